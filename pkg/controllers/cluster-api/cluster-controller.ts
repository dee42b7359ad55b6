import { isDeepStrictEqual } from 'node:util';

import type { ClusterAPICluster, ClusterAPIClusterStatus } from '../../apis/cluster-api/cluster.ts';
import { conditionOf } from '../../apis/cluster-api/condition.ts';
import { readClusterInfrastructure, type ClusterInfrastructureReport } from '../../apis/cluster-api/infrastructure.ts';
import {
  CLUSTER_FINALIZER,
  CLUSTER_NAME_LABEL,
  CONTROL_PLANE_LABEL,
  PAUSED_ANNOTATION,
} from '../../apis/cluster-api/keys.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import { controllerOf, isBeingDeleted, refOf, type KubeObject } from '../../apis/meta.ts';
import type { Lister } from '../../cache/lister.ts';
import type { Clock } from '../../clock/clock.ts';
import type { ObjectEvents } from '../../events/event-sink.ts';
import { CONTROL } from '../../gate/gate.ts';
import type { Reader, Writer } from '../../kube/client.ts';
import { ApiError, ignoreNotFound, isConflict } from '../../kube/errors.ts';
import { replacing } from '../../kube/merge-change.ts';
import { mergePatchIfUnchanged, statusPatch } from '../../kube/patch.ts';
import { clusterAPIClusters, clusterAPIMachines, type Resource } from '../../kube/resource.ts';
import { requeue, stop, waitFor, type StepResult } from '../../reconcile/result.ts';
import { clusterNewsOf, REFUSED } from './cluster-news.ts';
import { deprecatedConditions, merged, plain, type Said } from './conditions.ts';
import type { Externals, Found } from './externals.ts';
import { queueKeyOf } from './keys.ts';
import { isOwnedBy, withCluster } from './ownership.ts';

/** What Clusters of Cluster API are looked after with. */
export interface ClusterControllerDeps {
  readonly clusters: Lister<ClusterAPICluster>;
  /** Indexes: `cluster`. */
  readonly machines: Lister<ClusterAPIMachine>;
  readonly externals: Externals;
  readonly reader: Reader;
  readonly writer: Writer;
  /** `apiVersion` under which a kind of Cluster API is served now. */
  readonly servedAs: (resource: Resource<KubeObject>) => string;
  readonly clock: Clock;
  readonly recorder: ObjectEvents<ClusterAPICluster>;
  readonly isServed: (object: ClusterAPICluster) => boolean;
}

/** Something to be deleted; for people: `Machine m-1`. */
interface Removal {
  readonly what: string;
  readonly remove: () => Promise<unknown>;
}

/** A live look that a deletion waits for is repeated so often. */
const LOOK_AGAIN_MS = 5_000;

/**
 * Does for Clusters what providers of machines rely on: owns the infrastructure object that the Cluster names, shows that it is
 * provisioned, and keeps the Cluster until its Machines and that object are gone. Control planes are nobody's here: that of the target
 * cluster is there already.
 */
export class ClusterAPIClusterController {
  readonly #deps: ClusterControllerDeps;

  constructor(deps: ClusterControllerDeps) {
    this.#deps = deps;
  }

  /** One pass over one Cluster. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { clusters, externals, isServed } = this.#deps;
    const cluster = clusters.get(key);
    const user = queueKeyOf('Cluster', key);
    const isDone = cluster !== undefined && isBeingDeleted(cluster) && !isHeld(cluster);
    if (cluster === undefined || isDone || !isServed(cluster)) {
      externals.drop(user);
      return stop;
    }
    const reference = cluster.spec?.infrastructureRef;
    externals.use(user, cluster, reference === undefined ? [] : [reference]);
    if (cluster.spec?.paused === true || cluster.metadata.annotations?.[PAUSED_ANNOTATION] !== undefined) {
      await this.#tell(cluster, [plain('Paused', 'True', 'Paused', 'The Cluster is paused')], {}, signal);
      return stop;
    }
    if (isBeingDeleted(cluster)) return await this.#delete(cluster, signal);
    if (!isHeld(cluster)) {
      const finalizers = [...(cluster.metadata.finalizers ?? []), CLUSTER_FINALIZER];
      const patch = mergePatchIfUnchanged(cluster, { metadata: { finalizers } });
      await this.#deps.writer.patch('change', clusterAPIClusters, refOf(cluster), patch, { signal });
      return requeue(0, 'the finalizer to be seen');
    }
    const found = reference === undefined ? undefined : externals.find(cluster, reference);
    const report = await this.#own(cluster, found, signal);
    const told = await this.#takeOver(cluster, report, signal);
    await this.#tell(told, this.#conditionsOf(cluster, found, report), this.#statusOf(cluster, report), signal);
    return stop;
  }

  /** Makes the Cluster one of the owners of its infrastructure, and reads what that says; undefined: there is none to read. */
  async #own(
    cluster: ClusterAPICluster,
    found: Found | undefined,
    signal: AbortSignal,
  ): Promise<ClusterInfrastructureReport | undefined> {
    if (found?.kind !== 'found') return undefined;
    const { resource, contract } = found;
    const { labels = {}, ownerReferences = [] } = found.object.metadata;
    const owners = withCluster(ownerReferences, cluster, this.#deps.servedAs(clusterAPIClusters));
    const { name } = cluster.metadata;
    if ((owners === undefined && labels[CLUSTER_NAME_LABEL] === name) || isBeingDeleted(found.object)) {
      return readClusterInfrastructure(found.object, contract);
    }
    const metadata = {
      labels: { [CLUSTER_NAME_LABEL]: name },
      ...(owners !== undefined && { ownerReferences: [...owners] }),
    };
    const patch = mergePatchIfUnchanged(found.object, { metadata });
    const owned = await this.#deps.writer.patch('change', resource, refOf(found.object), patch, { signal });
    return readClusterInfrastructure(owned, contract);
  }

  /** The endpoint of the control plane, where the infrastructure chooses it. */
  async #takeOver(
    cluster: ClusterAPICluster,
    report: ClusterInfrastructureReport | undefined,
    signal: AbortSignal,
  ): Promise<ClusterAPICluster> {
    const controlPlaneEndpoint = report?.provisioned === true ? report.controlPlaneEndpoint : undefined;
    const known = cluster.spec?.controlPlaneEndpoint?.host ?? '';
    if (controlPlaneEndpoint === undefined || known !== '') return cluster;
    const patch = mergePatchIfUnchanged(cluster, { spec: { controlPlaneEndpoint } });
    return await this.#deps.writer.patch('change', clusterAPIClusters, refOf(cluster), patch, { signal });
  }

  #statusOf(
    cluster: ClusterAPICluster,
    report: ClusterInfrastructureReport | undefined,
  ): Partial<ClusterAPIClusterStatus> {
    const isProvisioned = this.#isProvisioned(cluster, report);
    const initialization = {
      ...cluster.status?.initialization,
      ...(isProvisioned && { infrastructureProvisioned: true }),
      ...(this.#hasControlPlane(cluster) && { controlPlaneInitialized: true }),
    };
    return {
      // It may not be empty.
      ...(Object.keys(initialization).length > 0 && { initialization }),
      phase: isProvisioned ? 'Provisioned' : 'Provisioning',
      ...(report?.failureDomains !== undefined && { failureDomains: report.failureDomains }),
    };
  }

  /** Once it was, it stays so. */
  #isProvisioned(cluster: ClusterAPICluster, report: ClusterInfrastructureReport | undefined): boolean {
    if (cluster.status?.initialization?.infrastructureProvisioned === true) return true;
    return cluster.spec?.infrastructureRef === undefined || report?.provisioned === true;
  }

  /** Without a reference to one, the control plane is that of the target cluster, which is there. */
  #hasControlPlane(cluster: ClusterAPICluster): boolean {
    if (cluster.status?.initialization?.controlPlaneInitialized === true) return true;
    if (cluster.spec?.controlPlaneRef === undefined) return true;
    return this.#machinesOf(cluster).some(
      ({ metadata, status }) => metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined && status?.nodeRef !== undefined,
    );
  }

  #conditionsOf(
    cluster: ClusterAPICluster,
    found: Found | undefined,
    report: ClusterInfrastructureReport | undefined,
  ): readonly Said[] {
    const { kind = '', name = '' } = cluster.spec?.infrastructureRef ?? {};
    const what = `${kind} ${name}`;
    const isProvisioned = this.#isProvisioned(cluster, report);
    const infrastructure = (): Said => {
      const type = 'InfrastructureReady';
      if (report?.ready !== undefined) return { ...report.ready, type };
      // A manager that has just begun to watch a kind knows nothing new about its objects: what was said last stands.
      const said = found?.kind === 'reading' ? conditionOf(cluster, type) : undefined;
      if (said !== undefined) return said;
      if (found?.kind === 'unknown') return plain(type, 'Unknown', 'InternalError', found.problem);
      if (found?.kind === 'absent') {
        return isProvisioned
          ? plain(type, 'False', 'Deleted', `${what} has been deleted`)
          : plain(
              type,
              'False',
              'DoesNotExist',
              `${what} does not exist: create it, or correct spec.infrastructureRef`,
            );
      }
      return isProvisioned
        ? plain(type, 'True', 'Ready')
        : plain(type, 'False', 'NotReady', `${what} is not provisioned yet`);
    };
    const hasControlPlane = this.#hasControlPlane(cluster);
    return [
      infrastructure(),
      hasControlPlane
        ? plain('ControlPlaneInitialized', 'True', 'Initialized')
        : plain(
            'ControlPlaneInitialized',
            'False',
            'NotInitialized',
            'Waiting for the Node of a control-plane Machine',
          ),
      plain('Deleting', 'False', 'NotDeleting'),
      plain('Paused', 'False', 'NotPaused'),
    ];
  }

  /** First its Machines, those with it that are no one else's being asked to go; then its infrastructure. */
  async #delete(cluster: ClusterAPICluster, signal: AbortSignal): Promise<StepResult> {
    const { writer, externals } = this.#deps;
    const machines = this.#machinesOf(cluster);
    const going = machines.filter((one) => isOwnedBy(one, cluster) && controllerOf(one) === undefined);
    const asked = going
      .filter((one) => !isBeingDeleted(one))
      .map((machine): Removal => {
        const { name, uid } = machine.metadata;
        const remove = () => writer.delete('destroy', clusterAPIMachines, refOf(machine), { uid }, { signal });
        return { what: `Machine ${name}`, remove };
      });
    await this.#remove(cluster, 'WaitingForWorkersDeletion', asked, signal);
    if (machines.length > 0) return await this.#waitsFor(cluster, machines, signal);
    const reference = cluster.spec?.infrastructureRef;
    const found = reference === undefined ? undefined : externals.find(cluster, reference);
    if (reference !== undefined && found !== undefined) {
      const what = `${reference.kind} ${reference.name}`;
      if (found.kind === 'unknown' || found.kind === 'reading') {
        const why = found.kind === 'unknown' ? found.problem : 'it is being read';
        const message = `It cannot be told whether ${what} is there: ${why}`;
        return await this.#waits(cluster, 'WaitingForInfrastructureDeletion', message, signal);
      }
      if (found.kind === 'found' && !isBeingDeleted(found.object) && isOwnedBy(found.object, cluster)) {
        const unseen = await this.#liveMachinesOf(cluster, signal);
        if (unseen.length > 0) return await this.#waitsFor(cluster, unseen, signal);
        const { resource, object } = found;
        const remove = () =>
          writer.delete('destroy', resource, refOf(object), { uid: object.metadata.uid }, { signal });
        await this.#remove(cluster, 'WaitingForInfrastructureDeletion', [{ what, remove }], signal);
      }
      const isOurs = found.kind !== 'found' || isOwnedBy(found.object, cluster);
      if (isOurs && !(await externals.isGone(cluster, reference, signal))) {
        await this.#waits(cluster, 'WaitingForInfrastructureDeletion', `Waiting for ${what} to be gone`, signal);
        return requeue(LOOK_AGAIN_MS, `${what} to be gone`);
      }
    }
    const unseen = await this.#liveMachinesOf(cluster, signal);
    if (unseen.length > 0) return await this.#waitsFor(cluster, unseen, signal);
    const finalizers = (cluster.metadata.finalizers ?? []).filter((one) => one !== CLUSTER_FINALIZER);
    const patch = mergePatchIfUnchanged(cluster, { metadata: { finalizers } });
    await writer
      .patch('destroy', clusterAPIClusters, refOf(cluster), patch, { signal, clusters: [CONTROL] })
      .catch(ignoreNotFound);
    return stop;
  }

  /**
   * Deletes objects, each whatever the API server says of the others. What the API server, or a webhook, refuses is said by the Cluster before it is tried
   * again.
   */
  async #remove(
    cluster: ClusterAPICluster,
    reason: string,
    removals: readonly Removal[],
    signal: AbortSignal,
  ): Promise<void> {
    const failures: unknown[] = [];
    const refusals: string[] = [];
    for (const { what, remove } of removals) {
      const [ended] = await Promise.allSettled([remove().catch(ignoreNotFound)]);
      if (ended.status === 'fulfilled') continue;
      const err: unknown = ended.reason;
      // Neither do the others get through: with many Machines, each would wait for its own answer.
      if (!(err instanceof ApiError) || err.reason === 'Unreachable') throw err;
      const said = `${what}: ${err.message}`;
      failures.push(err);
      if (!isConflict(err)) refusals.push(said);
    }
    // The cache puts last what has changed: the same is said as long as the same is refused.
    const [refusal] = refusals.toSorted();
    const more = refusals.length > 1 ? `; and ${refusals.length - 1} more` : '';
    if (refusal !== undefined) await this.#waits(cluster, reason, `${REFUSED}${refusal}${more}`, signal);
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '));
  }

  async #waitsFor(
    cluster: ClusterAPICluster,
    machines: readonly ClusterAPIMachine[],
    signal: AbortSignal,
  ): Promise<StepResult> {
    const names = machines.map(({ metadata }) => metadata.name).toSorted();
    const more = names.length > 5 ? ` and ${names.length - 5} more` : '';
    const message = `Waiting for Machines to be gone: ${names.slice(0, 5).join(', ')}${more}`;
    await this.#waits(cluster, 'WaitingForWorkersDeletion', message, signal);
    return requeue(LOOK_AGAIN_MS, message);
  }

  async #waits(cluster: ClusterAPICluster, reason: string, message: string, signal: AbortSignal): Promise<StepResult> {
    await this.#tell(cluster, [plain('Deleting', 'True', reason, message)], { phase: 'Deleting' }, signal);
    return waitFor(message);
  }

  /** Writes what has changed of the status; conditions that are not said stay. */
  async #tell(
    cluster: ClusterAPICluster,
    said: readonly Said[],
    more: Partial<ClusterAPIClusterStatus>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, writer } = this.#deps;
    const before = cluster.status ?? {};
    const older = said.filter(({ type }) => type === 'InfrastructureReady' || type === 'ControlPlaneInitialized');
    const v1beta1 = before.deprecated?.v1beta1;
    const conditions = deprecatedConditions(v1beta1?.conditions ?? [], older, clock.now());
    const after: ClusterAPIClusterStatus = {
      ...before,
      ...more,
      conditions: merged(before.conditions ?? [], said, clock.now()),
      ...(older.length > 0 && { deprecated: { ...before.deprecated, v1beta1: { ...v1beta1, conditions } } }),
    };
    if (isDeepStrictEqual(before, after)) return;
    const change = replacing<ClusterAPIClusterStatus>(before, after);
    if (change === null) return;
    await writer.patch('change', clusterAPIClusters, refOf(cluster), statusPatch(cluster, change), { signal });
    for (const told of clusterNewsOf(cluster, { ...cluster, status: after })) {
      this.#deps.recorder.event({ object: cluster, ...told });
    }
  }

  /**
   * Read live: a Machine that a late cache does not show would lose what it runs on, and could not go any more without its Cluster. Throws
   * ApiError.
   */
  async #liveMachinesOf({ metadata }: ClusterAPICluster, signal: AbortSignal): Promise<readonly ClusterAPIMachine[]> {
    const { namespace = '', name } = metadata;
    const { items } = await this.#deps.reader.list(clusterAPIMachines, { namespace, signal });
    return items.filter(({ spec }) => spec?.clusterName === name);
  }

  #machinesOf({ metadata }: ClusterAPICluster): readonly ClusterAPIMachine[] {
    const named = this.#deps.machines.byIndex('cluster', metadata.name);
    return named.filter((machine) => machine.metadata.namespace === metadata.namespace);
  }
}

function isHeld({ metadata }: ClusterAPICluster): boolean {
  return metadata.finalizers?.includes(CLUSTER_FINALIZER) === true;
}
