import type { IronCoreMachine } from '../api/machine.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Secret } from '../../../apis/wire.ts';
import { DriverError } from '../../../driver/error.ts';
import type { New } from '../../../kube/client/client.ts';
import { ignoreNotFound, ignoreAlreadyExists, isConflict, isNotFound } from '../../../kube/client/errors.ts';
import { mergePatch } from '../../../kube/client/patch.ts';
import { secrets } from '../../../kube/client/resource.ts';
import type { Resource } from '../../../apis/resource.ts';
import { ironCoreMachinePools, ironCoreMachines } from '../api/resources.ts';
import { isMachineName, type MachineIdentity } from '../../../drivers/machine-identity.ts';
import { labelled } from '../../../drivers/labelled.ts';
import type { SecretCluster } from '../../../drivers/secret-clusters.ts';
import { carries, isOf, isTagged, IRONCORE_NAMESPACE_LABEL, placeIn } from './tags.ts';

export interface MachineScope {
  readonly at: SecretCluster;
  readonly machine: MachineIdentity;
  /** Of the class, as an earlier provider has set them. */
  readonly labels: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** What messages call a Machine of IronCore. */
export function ironCoreMachineText({ metadata: { namespace = '', name } }: IronCoreMachine): string {
  return `Machine ${namespace}/${name} of IronCore`;
}

export async function hasPool(at: SecretCluster, name: string | undefined, signal: AbortSignal): Promise<boolean> {
  if (name === undefined || !isMachineName(name)) return false;
  const options = { signal, metadataOnly: true } as const;
  return (await at.reader.get(ironCoreMachinePools, { name }, options).catch(ignoreNotFound)) !== undefined;
}

/** The Machine of that name; undefined when there is none. */
export async function readMachine(
  { reader, namespace }: SecretCluster,
  name: string,
  signal: AbortSignal,
): Promise<IronCoreMachine | undefined> {
  return await reader.get(ironCoreMachines, { namespace, name }, { signal }).catch(ignoreNotFound);
}

/** The Machine of IronCore of a machine: it has its name, or the one in its provider id. */
export async function findMachine({ at, machine, labels, signal }: MachineScope): Promise<IronCoreMachine | undefined> {
  const { name: known = machine.name } = placeIn(machine.providerID) ?? {};
  const names = new Set([known, machine.name]);
  for (const name of names) {
    const found = isMachineName(name) ? await readMachine(at, name, signal) : undefined;
    if (found !== undefined && isOf(found, machine, labels)) return found;
  }
  return undefined;
}

/** Those that this driver has made for a namespace of ours, and those that an earlier provider has made with these labels. */
export async function listMachines(
  at: SecretCluster,
  namespace: string,
  labels: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly IronCoreMachine[]> {
  const list = (labelSelector: string): Promise<readonly IronCoreMachine[]> =>
    labelled(at.reader, ironCoreMachines, { namespace: at.namespace, labelSelector, signal });
  const ours = await list(`${IRONCORE_NAMESPACE_LABEL}=${namespace}`);
  // Without labels there is no telling which ones an earlier provider has made.
  const wanted = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  if (wanted.length === 0) return ours;
  const earlier = await list(wanted.join(','));
  return [...ours, ...earlier.filter((one) => !isTagged(one) && carries(one, labels))];
}

/**
 * Makes the Machine, or finds the one that an earlier call has made: looking and making are one step, which the API server takes, as there
 * is one Machine of a name. Throws AlreadyExists when somebody else has it, Aborted while one goes.
 */
export async function makeMachine(
  { at, machine, labels, signal }: MachineScope,
  wanted: New<IronCoreMachine>,
): Promise<{ readonly made: IronCoreMachine; readonly isNew: boolean }> {
  const made = await at.writer.create('create', ironCoreMachines, wanted, { signal }).catch(ignoreAlreadyExists);
  if (made !== undefined) return { made, isNew: true };
  const known = await readMachine(at, wanted.metadata.name, signal);
  if (known === undefined)
    throw new DriverError('Aborted', `Machine ${wanted.metadata.name} of IronCore was deleted in the meantime`);
  if (!isOf(known, machine, labels)) {
    throw new DriverError(
      'AlreadyExists',
      `${ironCoreMachineText(known)} already exists and does not belong to this machine`,
    );
  }
  // One that goes is not given out: its machine would have a VM that is about to vanish.
  if (known.metadata.deletionTimestamp !== undefined) {
    throw new DriverError('Aborted', `${ironCoreMachineText(known)} is still being deleted`);
  }
  return { made: known, isNew: false };
}

/** Makes the Secret, or brings the one that an earlier call has made up to date: its token may have run out meanwhile. */
export async function ensureSecret({ at, machine, signal }: MachineScope, wanted: New<Secret>): Promise<void> {
  const ref = { namespace: at.namespace, name: wanted.metadata.name };
  const made = await at.writer.create('create', secrets, wanted, { signal }).catch(ignoreAlreadyExists);
  if (made !== undefined) return;
  const known = await at.reader.get(secrets, ref, { signal }).catch(ignoreNotFound);
  if (known === undefined)
    throw new DriverError('Aborted', `Secret ${ref.namespace}/${ref.name} was deleted in the meantime`);
  if (!isTagged(known) || !isOf(known, machine, {})) {
    throw new DriverError(
      'AlreadyExists',
      `Secret ${ref.namespace}/${ref.name} already exists and does not belong to this machine`,
    );
  }
  const { data = {}, metadata } = wanted;
  if (Object.entries(data).every(([key, value]) => known.data?.[key] === value)) return;
  const { ownerReferences = [] } = metadata;
  await at.writer.patch('change', secrets, ref, mergePatch(known, { data, metadata: { ownerReferences } }), { signal });
}

/** Whether a Machine that this driver has made has its Ignition config. */
export async function hasSecret({ at, signal }: MachineScope, found: IronCoreMachine): Promise<boolean> {
  const ref = { namespace: at.namespace, name: found.metadata.name };
  return (await at.reader.get(secrets, ref, { signal, metadataOnly: true }).catch(ignoreNotFound)) !== undefined;
}

/** Deletes the ignition Secrets of a machine, whether its Machine of IronCore is still there or not. Resolves with whether there were any. */
export async function removeSecrets(whose: MachineScope, found: IronCoreMachine | undefined): Promise<boolean> {
  const { at, machine, signal } = whose;
  const { namespace } = at;
  const named = found?.spec.ignitionRef?.name;
  let hadAny = false;
  for (const name of new Set([machine.name, found?.metadata.name ?? machine.name, named ?? machine.name])) {
    if (!isMachineName(name)) continue;
    const secret = await at.reader
      .get(secrets, { namespace, name }, { signal, metadataOnly: true })
      .catch(ignoreNotFound);
    if (secret === undefined) continue;
    const isOurs = isTagged(secret) ? isOf(secret, machine, {}) : isOfEarlierProvider(secret, found);
    if (!isOurs) continue;
    await removed(at, secrets, secret, signal);
    hadAny = true;
  }
  return hadAny;
}

/** An earlier provider named the Secret like its Machine, or so, and set no label. */
function isOfEarlierProvider({ metadata: { name } }: KubeObject, found: IronCoreMachine | undefined): boolean {
  if (found === undefined || isTagged(found) || found.spec.ignitionRef?.name !== name) return false;
  return name === found.metadata.name || name === `${found.metadata.name}-ignition`;
}

/** Begins the deletion of an object. Resolves with it while finalizers hold it, with undefined when it is gone. */
export async function removed<T extends KubeObject>(
  { reader, writer, namespace }: SecretCluster,
  resource: Resource<T>,
  { metadata: { name, uid } }: T,
  signal: AbortSignal,
): Promise<T | undefined> {
  try {
    return await writer.delete('destroy', resource, { namespace, name }, { uid }, { signal });
  } catch (err) {
    if (isNotFound(err)) return undefined;
    if (!isConflict(err)) throw err;
    // Another object may have its name. But a webhook, or a server that is busy with it, may refuse with a conflict as well.
    const now = await reader.get(resource, { namespace, name }, { signal, metadataOnly: true }).catch(ignoreNotFound);
    if (now?.metadata.uid === uid) throw err;
    return undefined;
  }
}
