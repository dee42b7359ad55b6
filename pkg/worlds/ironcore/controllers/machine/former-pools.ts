import { FORMER_POOL_UIDS_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../../../apis/meta.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import { POOL_UID_LABEL } from './keys.ts';

/** UIDs of MachinePools that were this one before it was deleted, or lost, and made again: somebody has said so. */
export function formerUIDsOf({ metadata }: Pick<KubeObject, 'metadata'>): readonly string[] {
  const text = metadata.annotations?.[FORMER_POOL_UIDS_ANNOTATION] ?? '';
  return text
    .split(',')
    .map((uid) => uid.trim())
    .filter((uid) => uid !== '');
}

/** UID of the MachinePool that a machine was made for; empty: it does not say. */
export function poolUIDOf({ metadata }: Pick<RuntimeMachine, 'metadata'>): string {
  return metadata.labels[POOL_UID_LABEL] ?? '';
}

/** What a runtime says goes into a command only if it can be nothing but a UID. */
const UID = /^[\dA-Za-z-]{1,64}$/;

/** How machines of MachinePools that are not there are made those of this one, for a message. */
export function formerPoolHint(pool: Pick<KubeObject, 'metadata'>, former: readonly RuntimeMachine[]): string {
  const uids = new Set([...formerUIDsOf(pool), ...former.map(poolUIDOf)].filter((uid) => UID.test(uid)));
  return (
    'Machines of a MachinePool that does not exist belong to this pool before it was re-created, or to another cluster that uses the same ' +
    'runtime; an annotation that permits deletion does not apply to them. If they belong to this pool, run: kubectl annotate --overwrite ' +
    `machinepools.compute.ironcore.dev ${pool.metadata.name} ${FORMER_POOL_UIDS_ANNOTATION}=${[...uids].join(',')}`
  );
}
