import {
  DELETION_PREPARATION_SINCE_ANNOTATION,
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
  MAINTENANCE_NODE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
  SCALE_UP_DISABLED_LABEL,
} from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import { fromTimestamp } from '../../../pkg/base/clock/clock.ts';
import { CELL_LABEL, type MachinesWorld } from './machines-world.ts';

/** What the program puts on Nodes only while it has something to do with them. */
const PASSING =
  /prefer-no-schedule|preserve|scale-down-disabled|for-update|candidate|maintenance|update-result|update-failed|critical-components/i;
/** Conditions of Nodes that last as long as what they tell of, and reasons for which they may stay. */
const PASSING_CONDITIONS: Readonly<Record<string, readonly string[]>> = {
  Preserved: ['Preservation stopped.'],
  Maintenance: ['NotInMaintenance'],
  InPlaceUpdate: ['UpdateSuccessful', 'CandidateForUpdate'],
};
/** What is noted on a Machine only while something is done with it. */
const NOTES = [
  MAINTENANCE_SINCE_ANNOTATION,
  MAINTENANCE_NODE_ANNOTATION,
  DELETION_PREPARATION_SINCE_ANNOTATION,
  LAST_APPLIED_NODE_PRESERVE_ANNOTATION,
];

/** So long a Node that came in place of another is kept from the autoscaler, and what a look may take. */
const HELD_MS = 660_000;

/** What is left over in a world whose pool is as asked for: nothing, if all is well. */
export function leftoversIn(world: MachinesWorld): string[] {
  const { kinds, objects } = world.servers.target;
  const secretKind = kinds.find(({ plural }) => plural === 'secrets');
  const tokens = secretKind === undefined ? [] : objects.of(secretKind).list();
  const foreign = world.sharesTarget
    ? world.nodes.filter(({ metadata }) => metadata.labels?.[CELL_LABEL] !== world.namespace)
    : [];
  return [
    ...foreign.map(({ metadata }) => `Node ${metadata.name} has label ${CELL_LABEL}=${metadata.labels?.[CELL_LABEL]}`),
    ...strayIn(world, world.machines, ({ metadata }) => metadata.labels?.['node']),
    ...world.machines.flatMap(notesOn),
    ...world.nodes.flatMap(conditionsLeftOn),
    ...world.sets
      .filter(
        ({ metadata, spec }) => (spec.replicas ?? 0) > 0 && metadata.labels?.[SCALE_UP_DISABLED_LABEL] !== undefined,
      )
      .map(({ metadata }) => `MachineSet ${metadata.name} may not grow`),
    ...(world.sharesTarget ? [] : tokens)
      .filter(({ metadata }) => metadata.name.startsWith('bootstrap-token-'))
      .map(({ metadata }) => `Secret ${metadata.name} is left`),
  ];
}

/** Marks that Nodes still have, and Nodes and VMs that belong to none of the Machines. */
export function strayIn<T extends KubeObject>(
  { nodes, cloud, time }: Pick<MachinesWorld, 'nodes' | 'cloud' | 'time'>,
  machines: readonly T[],
  nodeNameOf: (machine: T) => string | undefined,
): string[] {
  const owned = new Set(machines.map(nodeNameOf));
  const names = new Set(machines.map(({ metadata }) => metadata.name));
  const stray = nodes.filter(({ metadata }) => !owned.has(metadata.name));
  const ownerless = cloud.all().filter(({ machineName }) => !names.has(machineName));
  return [
    ...nodes.flatMap((node) =>
      marksOf(node, time.epochMs).map((mark) => `Node ${node.metadata.name} still has ${mark}`),
    ),
    ...stray.map(({ metadata }) => `Node ${metadata.name} belongs to no Machine`),
    ...ownerless.map((vm) => `VM ${vm.providerID} of ${vm.machineName} belongs to no Machine`),
  ];
}

/** What a Machine still says of something that is over. */
function notesOn({ metadata: { name, annotations = {} }, status }: Machine): string[] {
  const { preserveExpiryTime } = status?.currentStatus ?? {};
  return [
    ...NOTES.filter((key) => annotations[key] !== undefined).map((key) => `Machine ${name} still has ${key}`),
    ...((preserveExpiryTime ?? '') === '' ? [] : [`Machine ${name} is preserved until ${preserveExpiryTime}`]),
  ];
}

function conditionsLeftOn({ metadata, status }: Node): string[] {
  return (status?.conditions ?? [])
    .filter(({ type, reason = '' }) => PASSING_CONDITIONS[type]?.includes(reason) === false)
    .map(({ type, reason }) => `Node ${metadata.name} still says ${type} ${reason}`);
}

/** What of that a Node has; one that came in place of another lately may be kept from the autoscaler. */
function marksOf({ metadata, spec }: Node, nowMs: number): string[] {
  const isNew = nowMs - (fromTimestamp(metadata.creationTimestamp) ?? 0) < HELD_MS;
  return [
    ...(spec?.unschedulable === true ? ['its cordon'] : []),
    ...(spec?.taints ?? []).filter(({ key }) => PASSING.test(key)).map(({ key }) => `taint ${key}`),
    ...Object.keys(metadata.annotations ?? {})
      .filter((key) => PASSING.test(key) && !(isNew && key.includes('scale-down-disabled')))
      .map((key) => `annotation ${key}`),
    ...Object.keys(metadata.labels ?? {})
      .filter((key) => PASSING.test(key))
      .map((key) => `label ${key}`),
  ];
}
