import { classNameOf, phaseOf } from '../../../../pkg/apis/machine/v1alpha1/defaults.ts';
import type { MachineClass } from '../../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { Machine } from '../../../../pkg/apis/machine/v1alpha1/machine.ts';
import { controllerOf } from '../../../../pkg/apis/meta.ts';
import type { ClusterMachine } from '../../../../pkg/worlds/mirantis/api/machine.ts';
import type { MachinePool } from '../../../../pkg/worlds/mirantis/api/pool.ts';
import { strayIn } from '../../world/at-rest.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { untruthsIn } from '../../world/statuses.ts';
import { objectsOf, valueOf, wantedLabelsOf } from './kinds.ts';
import { isOfPool } from './ledger.ts';

/** Keys of the labels that users give to Nodes. */
export const LABEL_KEYS = ['example.com/a', 'example.com/b'] as const;

/** The Machine that was made for one, or that it shows. */
export function oursOf({ machines }: MachinesWorld, front: ClusterMachine): Machine | undefined {
  const owner = controllerOf(front)?.uid;
  return machines.find((one) => controllerOf(one)?.uid === front.metadata.uid || one.metadata.uid === owner);
}

/** What a Machine is not yet that it should be. */
export function wantsOf(world: MachinesWorld, front: ClusterMachine): readonly string[] {
  const ours = oursOf(world, front);
  if (front.metadata.deletionTimestamp !== undefined || valueOf(front)['delete'] === true) return ['its end'];
  if (ours === undefined) return ['a Machine'];
  if (ours.metadata.deletionTimestamp !== undefined) return ['another Machine'];
  const node = world.nodes.find((one) => one.metadata.name === ours.metadata.labels?.['node']);
  const wanted = wantedLabelsOf(front);
  const wrong = LABEL_KEYS.filter((key) => node?.metadata.labels?.[key] !== wanted.get(key));
  return [
    ...(phaseOf(ours) === 'Running' ? [] : [`to run, and is ${phaseOf(ours)}`]),
    ...(world.cloud.get(ours.spec?.providerID ?? '') === undefined ? ['a VM'] : []),
    ...(front.status?.providerStatus?.status === 'Ready' ? [] : ['to be Ready']),
    ...wrong.map((key) => `label ${key}`),
  ];
}

function classesOf({ servers: { control } }: MachinesWorld): readonly MachineClass[] {
  return control.kinds
    .filter(({ plural, group }) => plural === 'machineclasses' && group === 'machine.sapcloud.io')
    .flatMap((kind) => control.objects.of(kind).list() as readonly unknown[] as readonly MachineClass[]);
}

/** Machines of a pool whose servers are made from another image than it asks for: a rollout is held, or not begun. */
function outdatedOf({ spec }: MachinePool, world: MachinesWorld): number {
  const { image } = valueOf({ spec: spec?.machineSpec ?? {} });
  const current = classesOf(world).filter(({ providerSpec }) => {
    const { spec: server } = providerSpec as { readonly spec?: { readonly imageName?: unknown } };
    return server?.imageName === image;
  });
  const names = new Set(current.map(({ metadata }) => metadata.name));
  return world.machines.filter((one) => isOfPool(one) && !names.has(classNameOf(one))).length;
}

/** What a pool is not yet that it should be. */
export function wantsOfPool(pool: MachinePool, world: MachinesWorld): readonly string[] {
  const { metadata, spec } = pool;
  const { pool: deployment } = world;
  const replicas = Number(spec?.replicas);
  const { status = {} } = deployment ?? {};
  const count = world.machines.filter(isOfPool).length;
  const shown = objectsOf(world, 'machines').filter(isOfPool).length;
  const counts = {
    size: deployment?.spec?.replicas,
    updated: status.updatedReplicas,
    available: status.availableReplicas,
    count,
    shown,
  };
  return [
    ...(metadata.deletionTimestamp === undefined ? [] : ['its end']),
    ...(outdatedOf(pool, world) === 0 ? [] : ['its image on all Machines']),
    ...(status.observedGeneration === deployment?.metadata.generation ? [] : ['to be looked at']),
    ...Object.entries(counts).flatMap(([what, is]) =>
      (is ?? 0) === replicas ? [] : [`${what} ${replicas}, and has ${is}`],
    ),
  ];
}

/** What is left over at rest. */
export function leftoversOf(world: MachinesWorld): readonly string[] {
  const { machines } = world;
  const used = new Set([
    ...machines.map(classNameOf),
    ...world.sets.map(({ spec }) => spec?.template?.spec?.class?.name),
  ]);
  return [
    ...strayIn(world, machines, ({ metadata }) => metadata.labels?.['node']),
    ...classesOf(world)
      .filter(({ metadata }) => !used.has(metadata.name))
      .map(({ metadata }) => `MachineClass ${metadata.name} is used by nothing`),
  ];
}

/** What statuses say at rest that is not so. */
export function untruthsOf(world: MachinesWorld): readonly string[] {
  return [
    ...untruthsIn(world).filter((what) => !what.startsWith('MachineDeployment')),
    ...objectsOf(world, 'machines').flatMap((front) => untruthsOfFront(world, front)),
    ...objectsOf(world, 'machinepools').flatMap(untruthsOfPool),
    ...objectsOf(world, 'clusters').flatMap(({ status }) =>
      untruthsOfConditions('Cluster', status?.providerStatus?.conditions),
    ),
  ];
}

function untruthsOfFront(world: MachinesWorld, front: ClusterMachine): readonly string[] {
  const what = `Machine ${front.metadata.name}`;
  const ours = oursOf(world, front);
  const { providerStatus = {} } = front.status ?? {};
  const node = world.nodes.find((one) => one.metadata.name === ours?.metadata.labels?.['node']);
  const address = node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
  const id = ours?.spec?.providerID?.split('/').at(-1);
  const { id: said, ready } = providerStatus.providerInstanceState ?? {};
  const told = {
    address: [providerStatus.privateIp, address],
    'its server': [said, id],
    'that it works': [ready, true],
    maintenance: [providerStatus.maintenance, false],
    delete: [providerStatus.delete, false],
  };
  return [
    ...untruthsOfConditions(what, providerStatus.conditions),
    ...Object.entries(told).flatMap(([of, [says, is]]) =>
      says === is ? [] : [`${what} says of ${of} ${says}, and it is ${is}`],
    ),
  ];
}

function untruthsOfPool({ metadata, spec, status = {} }: MachinePool): readonly string[] {
  const counts = {
    replicas: status.replicas,
    readyReplicas: status.readyReplicas,
    updatedReplicas: status.updatedReplicas,
  };
  return [
    ...untruthsOfConditions('MachinePool', status.conditions),
    ...(status.observedGeneration === metadata.generation ? [] : ['MachinePool says that it is of another generation']),
    ...Object.entries(counts).flatMap(([what, is]) =>
      is === spec?.replicas ? [] : [`MachinePool says ${what} ${is}`],
    ),
  ];
}

function untruthsOfConditions(
  what: string,
  conditions: readonly { readonly type: string; readonly ready: boolean; readonly message: string }[] = [],
): readonly string[] {
  return conditions.filter(({ ready }) => !ready).map(({ type, message }) => `${what} says ${type}: ${message}`);
}
