import { downwardValues, type DownwardFields } from '../../api/downward-api.ts';
import type { ObjectMeta } from '../../../../apis/meta.ts';

/** Finalizer of a Machine that may have a machine at a runtime. */
export const IRONCORE_MACHINE_FINALIZER = 'machinepoollet.ironcore.dev/machine';

const PREFIX = 'machinepoollet.ironcore.dev';

/** Labels by which a machine at a runtime is found again. */
export const UID_LABEL = `${PREFIX}/machine-uid`;
export const MACHINE_NAMESPACE_LABEL = `${PREFIX}/machine-namespace`;
export const NAME_LABEL = `${PREFIX}/machine-name`;
/** UID of the MachinePool that it was made for: what other clusters have at the runtime is none of ours. Brokers hand on labels that begin so. */
export const POOL_UID_LABEL = `downward-api.${PREFIX}/machinepool-uid`;
/** How labels and annotations begin that runtimes are told of because a flag says so. */
export const DOWNWARD_PREFIX = `downward-api.${PREFIX}/`;

/** Annotations of a machine at a runtime: generation of its Machine, its own when that was written, and its NetworkInterfaces by entry. */
export const MACHINE_GENERATION = `${PREFIX}/machine-generation`;
export const RUNTIME_GENERATION = `${PREFIX}/irimachine-generation`;
export const NIC_MAPPING = `${PREFIX}/networkinterfacemapping`;
/** The same: which process looked after the machine last, as pool-claims.ts has it. */
export const CLAIM = 'machine.sapcloud.io/claim';

/** Attributes of volumes and network interfaces at a runtime: labels of the object, as JSON. */
export const VOLUME_LABELS_ATTRIBUTE = 'rawVolumeLabels';
export const NIC_LABELS_ATTRIBUTE = 'rawNICLabels';
export const NETWORK_LABELS_ATTRIBUTE = 'rawNetworkLabels';

/** The labels of an object in such an attribute, with the fields that a flag names. */
export function objectLabels(
  kind: 'volume' | 'nic' | 'network',
  metadata: ObjectMeta,
  fields: DownwardFields = new Map(),
): string {
  const { name, namespace = '', uid } = metadata;
  // In the order in which Go writes a map.
  const downward = Object.entries(downwardOf(fields, metadata)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify({
    ...Object.fromEntries(downward),
    [`${PREFIX}/${kind}-name`]: name,
    [`${PREFIX}/${kind}-namespace`]: namespace,
    [`${PREFIX}/${kind}-uid`]: uid,
  });
}

/** Fields of an object as labels or annotations at a runtime. */
export function downwardOf(fields: DownwardFields, metadata: ObjectMeta): Readonly<Record<string, string>> {
  const values = Object.entries(downwardValues(fields, metadata));
  return Object.fromEntries(values.map(([name, value]) => [`${DOWNWARD_PREFIX}${name}`, value]));
}

/** Says that an object is made and removed with its Machine. */
export const EPHEMERAL_ANNOTATION = 'common.ironcore.dev/ephemeral-managed-by';
export const EPHEMERAL_MANAGER = 'ephemeral-manager';
/** Somebody else looks after the object. */
export const MANAGED_BY_ANNOTATION = 'common.ironcore.dev/managed-by';
/** A label: where processes serve Machines by its value, who serves this one. */
export const IRONCORE_WATCH_FILTER_LABEL = 'common.ironcore.dev/watch-filter';
/** Somebody has asked for a look at the object: it is taken off when that is begun. */
export const REQUESTED_AT_ANNOTATION = 'reconcile.common.ironcore.dev/requested-at';
