import { setTimeout as sleep } from 'node:timers/promises';

import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { DriverCall, MachineRequest, VirtualMachine } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { type RetriedCall, retryDelayMs, retryOf } from '../../pkg/driver/retry.ts';
import { OpenStackDriver } from '../../pkg/drivers/openstack/driver.ts';
import { DEFAULT_OPENSTACK_SETTINGS, type OpenStackSettings } from '../../pkg/drivers/openstack/settings.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { callOf as anyCallOf, requestOf, type SecretTexts } from '../drivers/requests.ts';
import type { Bed } from './bed.ts';
import { openStackClass, secretOf } from './requests.ts';

/** A driver that knows nothing of what another one has begun. */
export function newDriver(settings: Partial<OpenStackSettings> = {}): OpenStackDriver & AsyncDisposable {
  const driver = new OpenStackDriver({
    settings: { ...DEFAULT_OPENSTACK_SETTINGS, ...settings },
    clock: new SystemClock(),
    log: silentLogger,
  });
  return Object.assign(driver, { [Symbol.asyncDispose]: async () => await driver.close() });
}

/** What heals by itself, so that it says nothing about a machine. */
const TRANSIENT = ['Aborted', 'Unavailable', 'Uninitialized'] as const;
/** So long a call is repeated: others use the host of the tests. */
const PATIENCE_MS = 120_000;

/** Repeats a call as the manager does: after what heals by itself, with its pauses, and not before the cloud wants to be asked again. */
export async function heeding<T>(kind: RetriedCall, work: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + PATIENCE_MS;
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (err) {
      if (!DriverError.hasCode(err, ...TRANSIENT) || performance.now() > endMs) throw err;
      await sleep(retryDelayMs(retryOf(kind, err.code), failures, 0, err.retryAfterMs));
    }
  }
}

/** Makes the server of a machine, and waits until it runs. */
export async function create(driver: OpenStackDriver, request: MachineRequest): Promise<VirtualMachine> {
  await heeding('create', async () => await driver.createMachine(request, callOf()));
  return await heeding('initialize', async () => await driver.initializeMachine(request, callOf()));
}

/** Deletes a machine; none is deleted already. */
export async function remove(driver: OpenStackDriver, request: MachineRequest): Promise<void> {
  await heeding('delete', async () => {
    await driver.deleteMachine(request, callOf()).catch((err: unknown) => {
      if (!DriverError.hasCode(err, 'NotFound')) throw err;
    });
  });
}

/** Travels with a call; hosts of tests are shared, so that it may take long. */
export function callOf(change: Partial<DriverCall> = {}): DriverCall {
  return anyCallOf({ timeoutMs: 120_000, ...change });
}

/** A request about a machine, of a class with changes and a Secret with changes. */
export function requestFor(
  bed: Bed,
  name: string,
  change: Readonly<Record<string, unknown>> = {},
  options: { readonly secret?: SecretTexts; readonly providerID?: string; readonly machineClass?: MachineClass } = {},
): MachineRequest {
  const { secret = {}, machineClass = openStackClass(bed, change), providerID } = options;
  return requestOf(name, machineClass, {
    secret: secretOf(bed, secret),
    userData: '#cloud-config\n',
    ...(providerID === undefined ? {} : { providerID }),
  });
}
