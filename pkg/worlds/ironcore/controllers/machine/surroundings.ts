import { networkInterfaceNameOf, volumeNameOf, type IronCoreMachine } from '../../api/machine.ts';
import type { IronCoreNetworkInterface, IronCorePrefix } from '../../api/network-interface.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import { controllerOf, keyBeside, type KubeObject } from '../../../../apis/meta.ts';
import type { RuntimeClass } from '../../runtime/runtime.ts';
import { ApiError, ignoreNotFound } from '../../../../kube/client/errors.ts';
import { secrets } from '../../../../kube/client/resource.ts';
import type { Resource } from '../../../../apis/resource.ts';
import { ironCorePrefixes } from '../../api/resources.ts';
import type { OptionalSecretData, Surroundings } from './desired-machine.ts';
import type { Holder } from './kept-uses.ts';
import { releaseOfMissing } from './missing-machines.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

export type SurroundingsDeps = Pick<
  IronCoreCollaborators,
  | 'classes'
  | 'volumes'
  | 'networkInterfaces'
  | 'networks'
  | 'keptUses'
  | 'downwardAPI'
  | 'reader'
  | 'machines'
  | 'pools'
  | 'clock'
>;

export async function surroundingsOf(
  machine: IronCoreMachine,
  runtimeClasses: readonly RuntimeClass[],
  deps: SurroundingsDeps,
  signal: AbortSignal,
): Promise<Surroundings> {
  const { classes, volumes, networkInterfaces, networks, downwardAPI, reader } = deps;
  const beside = (name: string): string => keyBeside(machine, name);
  const { namespace = '' } = machine.metadata;
  const read = async <T extends KubeObject>(resource: Resource<T>, name: string): Promise<T | undefined> =>
    await reader.get(resource, { namespace, name }, { signal }).catch(ignoreNotFound);

  const data = new Map<string, OptionalSecretData>();
  for (const name of secretNames(machine, (of) => volumes.get(beside(of)))) {
    const found = await read(secrets, name);
    data.set(name, found && decoded(found.data ?? {}));
  }
  const addresses = new Map<string, string | undefined>();
  for (const { nic, prefix } of prefixNames(machine, (of) => networkInterfaces.get(beside(of)))) {
    addresses.set(prefix, await prefixAddressOf(reader, nic, prefix, signal));
  }
  return {
    downwardAPI,
    machineClass: classes.get(machine.spec.machineClassRef.name),
    runtimeClasses,
    secret: (name) => data.get(name),
    volume: (name) => volumes.get(beside(name)),
    networkInterface: (name) => networkInterfaces.get(beside(name)),
    network: (name) => networks.get(beside(name)),
    prefixAddress: (name) => addresses.get(name),
    keeperOf: (handle, object) => keeperOf(deps, machine, handle, object),
  };
}

/** The address of a prefix of a NetworkInterface; undefined: it has none yet. */
export async function prefixAddressOf(
  reader: SurroundingsDeps['reader'],
  { metadata: { uid, namespace = '' } }: IronCoreNetworkInterface,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const found = await reader
    .get(ironCorePrefixes, { namespace, name }, { signal })
    .catch(ignoreNotFound)
    .catch(unlessServed);
  return found !== undefined && controllerOf(found)?.uid === uid ? addressOf(found) : undefined;
}

/** A machine whose Machine has gone since its runtime does not answer may be gone with that: somebody must say so. */
function keeperOf(
  deps: Pick<SurroundingsDeps, 'keptUses' | 'machines' | 'pools' | 'clock'>,
  machine: IronCoreMachine,
  handle: string,
  object?: KubeObject,
): Holder | undefined {
  const { keptUses, machines, pools, clock } = deps;
  const holder = keptUses.holderOf(handle, machine);
  if (holder === undefined || keptUses.whyNot(holder.pool) === undefined) return holder;
  // One that was ever listed without a Machine is kept for somebody to look at: a pause of its runtime must not give it up.
  if (holder.machine === undefined || machines.get(holder.machine)?.metadata.uid === holder.uid) return holder;
  const release = releaseOfMissing(object, pools.get(holder.pool), clock.now());
  if (release !== 'given') return { ...holder, lost: release };
  keptUses.giveUp(holder, handle);
  return keeperOf(deps, machine, handle, object);
}

function secretNames(machine: IronCoreMachine, volumeOf: (name: string) => IronCoreVolume | undefined): Set<string> {
  const { ignitionRef, volumes = [] } = machine.spec;
  const ofVolumes = volumes.flatMap((entry) => {
    const name = volumeNameOf(machine, entry);
    const volume = name === undefined ? undefined : volumeOf(name);
    // Keys of volumes that are another's are none of ours to read.
    if (volume?.spec?.claimRef?.uid !== machine.metadata.uid) return [];
    return [volume.status?.access?.secretRef?.name, volume.spec.encryption?.secretRef?.name];
  });
  return new Set([ignitionRef?.name, ...ofVolumes].filter((name) => name !== undefined));
}

function prefixNames(
  machine: IronCoreMachine,
  nicOf: (name: string) => IronCoreNetworkInterface | undefined,
): readonly { readonly nic: IronCoreNetworkInterface; readonly prefix: string }[] {
  return (machine.spec.networkInterfaces ?? []).flatMap((entry) => {
    const name = networkInterfaceNameOf(machine, entry);
    const nic = nicOf(name);
    if (nic === undefined) return [];
    return (nic.spec?.ips ?? []).flatMap(({ value }, at) =>
      value === undefined ? [{ nic, prefix: `${name}-${at}` }] : [],
    );
  });
}

/** Where there are no prefixes at all, none is allocated: an unknown path is another answer than an unknown object. */
function unlessServed(err: unknown): undefined {
  if (!ApiError.is(err, 'NotServed')) throw err;
}

function addressOf({ spec, status }: IronCorePrefix): string | undefined {
  return status?.phase === 'Allocated' ? spec?.prefix?.split('/')[0] : undefined;
}

function decoded(data: Readonly<Record<string, string>>): Readonly<Record<string, Uint8Array>> {
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64')]));
}
