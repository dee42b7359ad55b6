import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { isBeingDeleted, keyBeside, keyOf, type KubeObject } from '../../../apis/meta.ts';
import type { Node, VolumeAttachment } from '../../../apis/wire.ts';
import type { Informer } from '../../../kube/cache/lister.ts';
import type { Priority, Queue } from '../../../work/workqueue/queue.ts';
import { priorityFor } from '../../../controllers/replicas/wake.ts';
import { clusterAPIQueueKeyOf } from './keys.ts';
import { isOfControlPlane } from './adoption.ts';

interface Watched {
  /** Indexes: CLUSTER_API_MACHINE_INDEXES. */
  readonly machines: Informer<ClusterAPIMachine>;
  readonly clusters: Informer<ClusterAPICluster>;
  /** Metadata only. */
  readonly secrets: Informer<KubeObject>;
  readonly nodes: Informer<Node> | undefined;
  readonly volumeAttachments: Informer<VolumeAttachment> | undefined;
}

type WatchedNodes = Pick<Watched, 'machines' | 'nodes' | 'volumeAttachments'> & {
  readonly isIn: (machine: ClusterAPIMachine) => boolean;
};

/**
 * Enqueues Machines and Clusters when they change, and each other; Machines when others with their provider ID change; and Machines when the Secrets that they
 * start with, their Nodes, or what is attached to these, change.
 */
export function wakeClusterAPI({ machines, clusters, secrets, nodes, volumeAttachments }: Watched, queue: Queue): void {
  const wake = (machine: ClusterAPIMachine, priority: Priority): void =>
    queue.add(clusterAPIQueueKeyOf('Machine', keyOf(machine)), priority);
  machines.onChange((old, current) => {
    const machine = current ?? old;
    if (machine === undefined) return;
    wake(machine, priorityFor(machines, isBeingDeleted(machine)));
    for (const rival of rivalsOf(machines, old, current)) wake(rival, priorityFor(machines, isBeingDeleted(rival)));
    for (const one of leftBehind(machines, old, current)) wake(one, 'normal');
    const cluster = clusters.get(keyBeside(machine, machine.spec?.clusterName ?? ''));
    // A Cluster that goes waits for its Machines.
    if (cluster !== undefined && machines.hasSynced)
      queue.add(clusterAPIQueueKeyOf('Cluster', keyOf(cluster)), 'normal');
  });
  clusters.onChange((old, current) => {
    const cluster = current ?? old;
    if (cluster === undefined) return;
    queue.add(clusterAPIQueueKeyOf('Cluster', keyOf(cluster)), priorityFor(clusters, isBeingDeleted(cluster)));
    for (const machine of machines.byIndex('cluster', cluster.metadata.name)) {
      if (machine.metadata.namespace === cluster.metadata.namespace) wake(machine, priorityFor(clusters, false));
    }
  });
  secrets.onChange((old, current) => {
    const secret = current ?? old;
    for (const machine of machines.byIndex('dataSecret', secret?.metadata.name ?? '')) {
      const isStarted = machine.status?.initialization?.infrastructureProvisioned === true;
      if (machine.metadata.namespace === secret?.metadata.namespace && !isStarted) wake(machine, 'normal');
    }
  });
  wakeOfNodes({ machines, nodes, volumeAttachments, isIn: () => true }, queue);
}

/** The other Machines with the provider ID that one has or had: whose Node it is depends on what each of them has. */
function rivalsOf(
  machines: Informer<ClusterAPIMachine>,
  ...states: readonly (ClusterAPIMachine | undefined)[]
): ReadonlySet<ClusterAPIMachine> {
  const ids = new Set(states.flatMap((one) => one?.spec?.providerID ?? []));
  const [uid] = states.flatMap((one) => one?.metadata.uid ?? []);
  const sharing = [...ids].flatMap((id) => machines.byIndex('providerID', id));
  return new Set(sharing.filter(({ metadata }) => metadata.uid !== uid));
}

/** The Machines that go, when one of their control plane goes: it may have been the last one, and they wait for an API server that is no more. */
function leftBehind(
  machines: Informer<ClusterAPIMachine>,
  old: ClusterAPIMachine | undefined,
  current: ClusterAPIMachine | undefined,
): readonly ClusterAPIMachine[] {
  if (
    old === undefined ||
    !isOfControlPlane(old) ||
    (current !== undefined && isBeingDeleted(current) === isBeingDeleted(old))
  )
    return [];
  const cluster = keyBeside(old, old.spec?.clusterName ?? '');
  return machines
    .byIndex('cluster', old.spec?.clusterName ?? '')
    .filter(
      (one) =>
        isBeingDeleted(one) &&
        one.metadata.uid !== old.metadata.uid &&
        keyBeside(one, one.spec?.clusterName ?? '') === cluster,
    );
}

/** Enqueues the Machines of a cluster when their Nodes change, and those that go when what is attached to these does. */
export function wakeOfNodes({ machines, nodes, volumeAttachments, isIn }: WatchedNodes, queue: Queue): void {
  const wake = (machine: ClusterAPIMachine, priority: Priority): void => {
    if (isIn(machine)) queue.add(clusterAPIQueueKeyOf('Machine', keyOf(machine)), priority);
  };
  nodes?.onChange((old, current) => {
    const ids = new Set([old, current].flatMap((node) => node?.spec?.providerID ?? []));
    const name = (current ?? old)?.metadata.name ?? '';
    const named = [...ids].flatMap((id) => machines.byIndex('providerID', id));
    for (const machine of new Set([...machines.byIndex('node', name), ...named])) {
      wake(machine, priorityFor(nodes, isBeingDeleted(machine)));
    }
  });
  volumeAttachments?.onChange((old, current) => {
    const name = (current ?? old)?.spec.nodeName ?? '';
    for (const machine of machines.byIndex('node', name)) if (isBeingDeleted(machine)) wake(machine, 'high');
  });
}
