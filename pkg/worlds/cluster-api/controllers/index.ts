import { ActivityRegistry } from '../../../work/activity/registry.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { isBeingDeleted, keyBeside, keyOf, type KubeObject } from '../../../apis/meta.ts';
import type { DrainOutcome } from '../../../drain/drain.ts';
import { DrainSession } from '../../../drain/session.ts';
import { eventsAbout } from '../../../kube/events/event-sink.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import { MACHINE_LEASE } from '../../../kube/leader/names.ts';
import type { Operator } from '../../../operator/operator.ts';
import { CLUSTER_API_KINDS, placesOf } from './kinds.ts';
import type { Controller } from '../../../work/reconcile/controller.ts';
import { endWithResults } from '../../../work/reconcile/last-results.ts';
import { CLUSTER_API_FLAGS } from './flags.ts';
import type { Draining } from '../../../controllers/draining.ts';
import type { PodRules } from '../../../controllers/machine-facts/pod-rules.ts';
import { ClusterAPIClusterController } from './cluster-controller.ts';
import { DataSecrets } from './data-secrets.ts';
import { DrainRules } from './drain-rules.ts';
import { Externals } from './externals.ts';
import { clusterAPIQueueKeyOf, clusterAPIObjectOf } from './keys.ts';
import { ClusterAPIMachineController, type ClusterAPIMachineControllerDeps } from './machine-controller.ts';
import type { NodeDrain } from './machine-pass.ts';
import { NodeClusters } from './node-clusters.ts';
import { wakeClusterAPI, wakeOfNodes } from './wake.ts';
import type { Resource } from '../../../apis/resource.ts';
import type { ApiError } from '../../../kube/client/errors.ts';
import { WATCH_FILTER_LABEL } from '../api/keys.ts';

const EVENT_SOURCE = 'cluster-api';
/** Drains at once: as many as of our own Machines, because they cost the same. */
const DRAINS_AT_ONCE = 1_000;
const UNUSED = { create: 1, initialize: 1, status: 1, delete: 1 };

/** MachineDrainRules, which drains of all machines obey. */
export function drainRules(operator: Operator): PodRules {
  const { definitions } = operator.caches.of(CLUSTER_API_KINDS);
  return new DrainRules({ definitions, open: openerOf(operator) });
}

/** Opens caches of what there is where Machines of Cluster API are looked after. */
function openerOf(operator: Operator) {
  const place = placesOf(operator.config.clusters.namespace, operator.config);
  return (resource: Resource<KubeObject>, refused: (err: ApiError) => void) =>
    operator.openCache(resource, { ...place, refused });
}

/** Looks after Machines and Clusters of Cluster API whose infrastructure is made by its providers. */
export function clusterAPI(
  operator: Operator,
  { drain, rules, keptVolumes }: Draining & { readonly rules: PodRules },
): Controller {
  const { caches, clock, log, metrics, reader, config } = operator;
  const cached = caches.of(CLUSTER_API_KINDS);
  const { clusterAPIMachines: machines, clusterAPIClusters: clusters, definitions } = cached;
  const { isEverywhere, watchFilter, synced } = config.of(CLUSTER_API_FLAGS);
  const secrets = isEverywhere ? cached.clusterAPISecrets : caches.secrets;
  const { writer, targets, gate } = operator.under(MACHINE_LEASE);
  const [target] = targets.all();
  const activities = new ActivityRegistry<{ drain: DrainOutcome }>({
    clock,
    log,
    metrics: metrics.activity,
    limits: { ...UNUSED, drain: DRAINS_AT_ONCE },
  });
  const drains = new DrainSession<NodeDrain>({ activities, drain });
  const externals = new Externals({
    definitions,
    reader,
    open: openerOf(operator),
  });
  const dataSecrets = new DataSecrets({ secrets, reader });
  const servedAs: ClusterAPIMachineControllerDeps['servedAs'] = (resource) => operator.servedAs(resource);
  const nodeClusters = new NodeClusters({
    secrets,
    reader,
    clock,
    target,
    open: (name, { kubeconfig, secret }, changed) => operator.targets.open(name, kubeconfig, { secret, gate, changed }),
  });
  const isServed = servedWith(watchFilter);
  const recorder = operator.recorder(EVENT_SOURCE);
  const shared = { machines, clusters, externals, reader, writer, servedAs, clock, isServed };
  const machine = new ClusterAPIMachineController({
    ...shared,
    dataSecrets,
    nodeClusters,
    drains,
    rules,
    keptVolumes,
    synced,
    recorder: eventsAbout(clusterAPIMachines, recorder),
  });
  const cluster = new ClusterAPIClusterController({
    ...shared,
    nodeClusters,
    recorder: eventsAbout(clusterAPIClusters, recorder),
  });
  return {
    name: 'cluster-api',
    queue: 'clusterapi',
    lease: MACHINE_LEASE,
    concurrency: config.machine.concurrency,
    reconcile: (queueKey, signal) => {
      const { kind, key } = clusterAPIObjectOf(queueKey);
      return kind === 'Machine' ? machine.reconcile(key, signal) : cluster.reconcile(key, signal);
    },
    // Which Node a Machine has, and whether it is empty, follows from caches that have caught up.
    requiresTarget: (queueKey) => {
      const { kind, key } = clusterAPIObjectOf(queueKey);
      const one = kind === 'Machine' ? machines.get(key) : undefined;
      return target !== undefined && one !== undefined && !nodeClusters.isApart(clusterKeyOf(one));
    },
    watches: [
      (queue) => activities.onEnd((key) => queue.add(key)),
      (queue) => externals.start((user) => queue.add(user)),
      // Who owns what is told in the version that is served.
      (queue) =>
        operator.onServedChange(() => {
          for (const one of machines.list()) queue.add(clusterAPIQueueKeyOf('Machine', keyOf(one)));
          for (const one of clusters.list()) queue.add(clusterAPIQueueKeyOf('Cluster', keyOf(one)));
        }),
      (queue) =>
        nodeClusters.start({
          wake: (user) => queue.add(user),
          opened: (name, { nodes, volumeAttachments }) => {
            const isIn = (one: ClusterAPIMachine): boolean => clusterKeyOf(one) === name;
            wakeOfNodes({ machines, nodes, volumeAttachments, isIn }, queue);
          },
        }),
      // A drain that rules have ended is taken up at once.
      (queue) =>
        void rules.onChange(() => {
          for (const one of machines.list().filter(isBeingDeleted)) {
            drains.retry(one.metadata.uid);
            queue.add(clusterAPIQueueKeyOf('Machine', keyOf(one)));
          }
        }),
      (queue) => {
        const { nodes, volumeAttachments } = target ?? {};
        wakeClusterAPI({ machines, clusters, secrets, nodes, volumeAttachments }, queue);
      },
    ],
    end: async (queue, graceMs) => {
      await endWithResults(activities, queue, { clock, graceMs });
      nodeClusters.stop();
      externals.stop();
    },
  };
}

function clusterKeyOf(machine: ClusterAPIMachine): string {
  return keyBeside(machine, machine.spec?.clusterName ?? '');
}

/** Whether an object is ours to look after, where several managers share its kind; an empty filter takes all. */
export function servedWith(filter: string): (object: KubeObject) => boolean {
  return ({ metadata }) => filter === '' || metadata.labels?.[WATCH_FILTER_LABEL] === filter;
}
