import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { DriverCall, MachineRequest } from '../../pkg/driver/driver.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';

/** What stands in a Secret. */
export type SecretTexts = Readonly<Record<string, string>>;

/** A client for a driver's socket. */
export function connect(path: string): GrpcDriver {
  const address = parseDriverAddress(`unix://${path}`);
  return new GrpcDriver({ address, clock: new SystemClock(), log: silentLogger });
}

/** What travels with a call: cluster `c-1`, token 1, 60 s, unless told otherwise. */
export function callOf(change: Partial<DriverCall> = {}): DriverCall {
  return { signal: new AbortController().signal, timeoutMs: 60_000, fencingToken: 1n, cluster: 'c-1', ...change };
}

/** A class of `provider` in namespace `shoot`. */
export function classOf(provider: string, providerSpec: unknown = {}): MachineClass {
  return {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'MachineClass',
    metadata: {
      name: `${provider}-class`,
      namespace: 'shoot',
      uid: 'u-class',
      resourceVersion: '1',
      creationTimestamp: '',
    },
    provider,
    providerSpec,
  };
}

/** A request about the machine `name` in namespace `shoot`; its UID is `u-<name>` unless told otherwise. */
export function requestOf(
  name: string,
  machineClass: MachineClass,
  options: { uid?: string; providerID?: string; userData?: string; secret?: SecretTexts } = {},
): MachineRequest {
  const { uid = `u-${name}`, providerID, userData = '#!/bin/sh', secret = {} } = options;
  return {
    machine: {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'Machine',
      metadata: { name, namespace: 'shoot', uid, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: providerID === undefined ? {} : { providerID },
    },
    machineClass,
    secretData: encoded({ ...secret, userData }),
  };
}

/** The stub by which an orphaned VM is deleted. */
export function stubOf(
  name: string,
  providerID: string,
  machineClass: MachineClass,
  secret: SecretTexts = {},
): MachineRequest {
  const machine = { metadata: { name, namespace: 'shoot' }, spec: { providerID } };
  return { machine, machineClass, secretData: encoded(secret) };
}

/** What a Secret holds, as a driver gets it. */
export function encoded(secret: SecretTexts): Record<string, Uint8Array> {
  const encoder = new TextEncoder();
  return Object.fromEntries(Object.entries(secret).map(([key, text]) => [key, encoder.encode(text)]));
}
