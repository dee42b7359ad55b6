import { isDeepStrictEqual } from 'node:util';

import type { ClusterAPICluster, ClusterAPIClusterStatus } from '../api/cluster.ts';
import type { ContractReference, ContractVersion } from '../api/contract.ts';
import { readControlPlane } from '../api/control-plane.ts';
import { readClusterInfrastructure } from '../api/infrastructure.ts';
import { CLUSTER_FINALIZER, CLUSTER_NAME_LABEL, PAUSED_ANNOTATION } from '../api/keys.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import { copyOfObject } from '../../../apis/copy.ts';
import { withFinalizer, withoutFinalizer, hasFinalizer } from '../../../apis/finalizers.ts';
import { controllerOf, isBeingDeleted, keyOf, refOf, type KubeObject } from '../../../apis/meta.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { ApiError, ignoreNotFound, isConflict } from '../../../kube/client/errors.ts';
import { replacing } from '../../../kube/client/merge-change.ts';
import { mergePatchIfUnchanged, statusPatch } from '../../../kube/client/patch.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import { type FieldPath, ownedPatch } from '../../../work/reconcile/object-pass/owned-fields.ts';
import { PassNotes } from '../../../work/reconcile/object-pass/pass-notes.ts';
import { writeRecord } from '../../../work/reconcile/object-pass/record.ts';
import { runPass } from '../../../work/reconcile/object-pass/run-pass.ts';
import { requeue, stop, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import {
  clusterConditions,
  isInitialized,
  isProvisioned,
  notAvailable,
  type ClusterFacts,
  type ObservedConnection,
  type ClusterObservation,
} from './cluster-conditions.ts';
import { clusterEventsOf } from './cluster-events.ts';
import { deprecatedConditions, merged, plain, type ConditionValue } from './conditions.ts';
import { olderClusterConditions } from './older-cluster-conditions.ts';
import type { OlderConditionValue } from './older-conditions.ts';
import { graceLeftMs } from './creation/node-by-provider-id.ts';
import { clusterAPIQueueKeyOf } from './keys.ts';
import { isOfControlPlane, isOwnedBy, withCluster } from './adoption.ts';
import type { ControllerDeps } from './machine-pass.ts';
import { namedUpTo } from '../../../apis/short-text.ts';

export interface ClusterControllerDeps extends ControllerDeps<ClusterAPICluster> {
  readonly reader: Reader;
}

/** Something to be deleted; for people: `Machine m-1`. */
interface Removal {
  readonly what: string;
  readonly remove: () => Promise<unknown>;
}

/** One pass over one Cluster: it changes the copy, and says what its status shows. */
interface ClusterPass {
  readonly cluster: ClusterAPICluster;
  readonly user: string;
  readonly signal: AbortSignal;
  /** Undefined: the status stays as it is. */
  said:
    | {
        readonly conditions: readonly ConditionValue[];
        readonly status?: Partial<ClusterAPIClusterStatus>;
        readonly older?: readonly OlderConditionValue[];
      }
    | undefined;
  /** The API server, or a webhook, refuses to delete something. */
  isRefused: boolean;
}

const RECORD = { resource: clusterAPIClusters, finalizer: CLUSTER_FINALIZER };

const OWNED_FIELDS: readonly FieldPath[] = [
  ['metadata', 'finalizers'],
  ['spec', 'controlPlaneEndpoint'],
];

/** Reasons of condition Deleting while an object that the Cluster names is deleted. */
const CONTROL_PLANE = 'WaitingForControlPlaneDeletion';
const INFRASTRUCTURE = 'WaitingForInfrastructureDeletion';

/** A live look that a deletion waits for is repeated so often. */
const RECHECK_MS = 5_000;

/**
 * Does for Clusters what providers of machines rely on: owns the objects of infrastructure and control plane that the Cluster names, shows what they
 * have reached, and keeps the Cluster until its Machines and these objects are gone. Without a control plane that of the target cluster is there
 * already.
 */
export class ClusterAPIClusterController {
  readonly #deps: ClusterControllerDeps;
  /** Keys of Clusters of which something was refused to be deleted in the last pass. */
  readonly #refused = new Set<string>();

  constructor(deps: ClusterControllerDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { clusters, externals, nodeClusters, isServed } = this.#deps;
    const cluster = clusters.get(key);
    const user = clusterAPIQueueKeyOf('Cluster', key);
    const isDone = cluster !== undefined && isBeingDeleted(cluster) && !hasFinalizer(cluster, CLUSTER_FINALIZER);
    if (cluster === undefined || isDone || !isServed(cluster)) {
      externals.drop(user);
      nodeClusters.drop(user);
      this.#refused.delete(user);
      return stop;
    }
    const { infrastructureRef, controlPlaneRef } = cluster.spec ?? {};
    externals.use(user, cluster, [infrastructureRef ?? [], controlPlaneRef ?? []].flat());
    const pass: ClusterPass = { cluster: copyOfObject(cluster), user, signal, said: undefined, isRefused: false };
    return await runPass(
      new PassNotes(),
      () => this.#run(pass),
      () => this.#write(cluster, pass),
    );
  }

  async #run(pass: ClusterPass): Promise<StepResult> {
    const { cluster, user, signal } = pass;
    const { infrastructureRef, controlPlaneRef, paused } = cluster.spec ?? {};
    if (paused === true || cluster.metadata.annotations?.[PAUSED_ANNOTATION] !== undefined) {
      pass.said = { conditions: [plain('Paused', 'True', 'Paused', 'The Cluster is paused')] };
      return stop;
    }
    if (isBeingDeleted(cluster)) {
      this.#deps.nodeClusters.drop(user);
      return await this.#delete(pass);
    }
    if (!hasFinalizer(cluster, CLUSTER_FINALIZER)) {
      cluster.metadata.finalizers = withFinalizer(cluster, CLUSTER_FINALIZER);
      return requeue(0, 'the finalizer to be recorded');
    }
    const infrastructure = await this.#own(cluster, infrastructureRef, readClusterInfrastructure, signal);
    const controlPlane = await this.#own(cluster, controlPlaneRef, readControlPlane, signal);
    const machines = this.#machinesOf(cluster);
    const hasControlPlaneNode = machines.some((one) => isOfControlPlane(one) && one.status?.nodeRef !== undefined);
    const { connection, againMs } = this.#connection(cluster, user, machines.length > 0);
    const facts: ClusterFacts = { cluster, infrastructure, controlPlane, connection, hasControlPlaneNode };
    const known = cluster.status?.deprecated?.v1beta1?.conditions ?? [];
    const older = olderClusterConditions(facts, known);
    pass.said = { conditions: clusterConditions(facts), status: statusOf(facts), older };
    takeOver(facts);
    return againMs === undefined ? stop : requeue(againMs, 'the API server of the Cluster to respond');
  }

  /** The connection is that of the Machines: it comes with the first, and goes with the last. `againMs`: when what was said last does not count any more. */
  #connection(
    cluster: ClusterAPICluster,
    user: string,
    hasMachines: boolean,
  ): { readonly connection: ObservedConnection; readonly againMs: number | undefined } {
    const { nodeClusters, clock } = this.#deps;
    if (!hasMachines) {
      nodeClusters.drop(user);
      const kind = nodeClusters.isApart(keyOf(cluster)) ? 'unused' : 'here';
      return { connection: { kind }, againMs: undefined };
    }
    nodeClusters.use(user, keyOf(cluster));
    const nodeCluster = nodeClusters.of(cluster, cluster);
    if (nodeCluster.kind !== 'unreachable') {
      const kind = nodeCluster.kind === 'reached' && nodeCluster.identity !== undefined ? 'reached' : 'here';
      return { connection: { kind }, againMs: undefined };
    }
    const leftMs = graceLeftMs({ clock }, { nodeCluster });
    const connection = { kind: nodeCluster.kind, why: nodeCluster.why, isOver: leftMs === 0 } as const;
    return { connection, againMs: leftMs === 0 ? undefined : leftMs };
  }

  /** Makes the Cluster one of the owners of an object that it names, and reads what that says. */
  async #own<Report>(
    cluster: ClusterAPICluster,
    reference: ContractReference | undefined,
    read: (object: KubeObject, contract: ContractVersion) => Report,
    signal: AbortSignal,
  ): Promise<ClusterObservation<Report>> {
    if (reference === undefined) return { kind: 'none', report: undefined };
    const found = this.#deps.externals.find(cluster, reference);
    if (found.kind !== 'found') return { ...found, report: undefined };
    const { resource, contract } = found;
    const { labels = {}, ownerReferences = [] } = found.object.metadata;
    const owners = withCluster(ownerReferences, cluster, this.#deps.servedAs(clusterAPIClusters));
    const { name } = cluster.metadata;
    if ((owners === undefined && labels[CLUSTER_NAME_LABEL] === name) || isBeingDeleted(found.object)) {
      return { kind: 'found', report: read(found.object, contract) };
    }
    const metadata = {
      labels: { [CLUSTER_NAME_LABEL]: name },
      ...(owners !== undefined && { ownerReferences: [...owners] }),
    };
    const patch = mergePatchIfUnchanged(found.object, { metadata });
    const owned = await this.#deps.writer.patch('change', resource, refOf(found.object), patch, { signal });
    return { kind: 'found', report: read(owned, contract) };
  }

  /**
   * First its Machines, those with it that are no one else's being asked to go; then its control plane, which takes its own Machines along; then
   * its infrastructure.
   */
  async #delete(pass: ClusterPass): Promise<StepResult> {
    const { cluster, signal } = pass;
    const { writer } = this.#deps;
    const { infrastructureRef, controlPlaneRef } = cluster.spec ?? {};
    const machines = this.#machinesOf(cluster);
    const going = machines.filter((one) => isOwnedBy(one, cluster) && controllerOf(one) === undefined);
    const asked = going
      .filter((one) => !isBeingDeleted(one))
      .map((machine): Removal => {
        const { name, uid } = machine.metadata;
        const remove = () => writer.delete('destroy', clusterAPIMachines, refOf(machine), { uid }, { signal });
        return { what: `Machine ${name}`, remove };
      });
    await this.#remove(pass, 'WaitingForWorkersDeletion', asked);
    const workers = machines.filter((one) => controlPlaneRef === undefined || !isOfControlPlane(one));
    if (workers.length > 0) return waitsFor(pass, workers);
    const isWorker = (one: ClusterAPIMachine): boolean => !isOfControlPlane(one);
    const ofControlPlane = await this.#deleteNamed(pass, controlPlaneRef, CONTROL_PLANE, isWorker);
    if (ofControlPlane !== undefined) return ofControlPlane;
    if (machines.length > 0) return waitsFor(pass, machines);
    const ofInfrastructure = await this.#deleteNamed(pass, infrastructureRef, INFRASTRUCTURE, () => true);
    if (ofInfrastructure !== undefined) return ofInfrastructure;
    const unseen = await this.#liveMachinesOf(cluster, signal);
    if (unseen.length > 0) return waitsFor(pass, unseen);
    cluster.metadata.finalizers = withoutFinalizer(cluster, CLUSTER_FINALIZER);
    return stop;
  }

  /**
   * Deletes an object that the Cluster names and owns, when none of those Machines is left, and waits until it is gone; undefined: there is nothing to
   * wait for.
   */
  async #deleteNamed(
    pass: ClusterPass,
    reference: ContractReference | undefined,
    reason: string,
    before: (machine: ClusterAPIMachine) => boolean,
  ): Promise<StepResult | undefined> {
    const { cluster, signal } = pass;
    const { writer, externals } = this.#deps;
    if (reference === undefined) return undefined;
    const found = externals.find(cluster, reference);
    const what = `${reference.kind} ${reference.name}`;
    if (found.kind === 'unknown' || found.kind === 'reading') {
      const why = found.kind === 'unknown' ? found.problem : 'loading is still in progress';
      return waits(pass, reason, `Unknown whether ${what} exists: ${why}`);
    }
    if (found.kind === 'found' && !isOwnedBy(found.object, cluster)) return undefined;
    if (found.kind === 'found' && !isBeingDeleted(found.object)) {
      const unseen = (await this.#liveMachinesOf(cluster, signal)).filter(before);
      if (unseen.length > 0) return waitsFor(pass, unseen);
      const { resource, object } = found;
      const remove = () => writer.delete('destroy', resource, refOf(object), { uid: object.metadata.uid }, { signal });
      await this.#remove(pass, reason, [{ what, remove }]);
    }
    if (await externals.isGone(cluster, reference, signal)) return undefined;
    waits(pass, reason, `Waiting for ${what} to be deleted`);
    return requeue(RECHECK_MS, `${what} to be gone`);
  }

  /**
   * Deletes objects, each whatever the API server says of the others. What the API server, or a webhook, refuses is said by the Cluster before it is tried
   * again.
   */
  async #remove(pass: ClusterPass, reason: string, removals: readonly Removal[]): Promise<void> {
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
    pass.isRefused ||= refusal !== undefined;
    if (refusal !== undefined) waits(pass, reason, `Cannot delete ${refusal}${more}`);
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '));
  }

  /** Writes what has changed; conditions that are not said stay. */
  async #write(observed: ClusterAPICluster, { cluster, user, said, isRefused, signal }: ClusterPass): Promise<void> {
    const { clock, writer, recorder } = this.#deps;
    const patch = ownedPatch(observed, cluster, OWNED_FIELDS);
    const base = await writeRecord(writer, RECORD, { observed, after: cluster, patch }, signal);
    if (base === undefined || said === undefined) return;
    const { conditions, status, older = [] } = said;
    const before = base.status ?? {};
    const v1beta1 = before.deprecated?.v1beta1;
    const olderOnes = deprecatedConditions(v1beta1?.conditions ?? [], older, clock.now());
    const after: ClusterAPIClusterStatus = {
      ...before,
      ...status,
      conditions: merged(before.conditions ?? [], conditions, clock.now(), base.metadata.generation),
      observedGeneration: base.metadata.generation ?? 0,
      ...(older.length > 0 && { deprecated: { ...before.deprecated, v1beta1: { ...v1beta1, conditions: olderOnes } } }),
    };
    if (isDeepStrictEqual(before, after)) return;
    const change = replacing<ClusterAPIClusterStatus>(before, after);
    if (change === null) return;
    await writer.patch('change', clusterAPIClusters, refOf(base), statusPatch(base, change), { signal });
    const refused = isRefused ? (this.#refused.has(user) ? 'yes' : 'since-now') : 'no';
    if (isRefused) this.#refused.add(user);
    else this.#refused.delete(user);
    const news = clusterEventsOf(base, { ...base, status: after }, refused);
    for (const event of news) recorder.event({ object: base, ...event });
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

/** The endpoint of the control plane, where infrastructure or control plane choose it. */
function takeOver(facts: ClusterFacts): void {
  const { cluster, infrastructure, controlPlane } = facts;
  const controlPlaneEndpoint =
    (infrastructure.report?.provisioned === true ? infrastructure.report.controlPlaneEndpoint : undefined) ??
    (isInitialized(facts) ? controlPlane.report?.controlPlaneEndpoint : undefined);
  const known = cluster.spec?.controlPlaneEndpoint?.host ?? '';
  if (controlPlaneEndpoint !== undefined && known === '') cluster.spec = { ...cluster.spec, controlPlaneEndpoint };
}

function waitsFor(pass: ClusterPass, machines: readonly ClusterAPIMachine[]): StepResult {
  const names = machines.map(({ metadata }) => metadata.name).toSorted();
  const message = `Waiting for Machines to be deleted: ${namedUpTo(5, names)}`;
  waits(pass, 'WaitingForWorkersDeletion', message);
  return requeue(RECHECK_MS, message);
}

function waits(pass: ClusterPass, reason: string, message: string): StepResult {
  const conditions = [plain('Deleting', 'True', reason, message), notAvailable(message)];
  pass.said = { conditions, status: { phase: 'Deleting' } };
  return waitFor(message);
}

function statusOf(facts: ClusterFacts): Partial<ClusterAPIClusterStatus> {
  const { cluster, infrastructure } = facts;
  const wasProvisioned = isProvisioned(facts);
  const initialization = {
    ...cluster.status?.initialization,
    ...(wasProvisioned && { infrastructureProvisioned: true }),
    ...(isInitialized(facts) && { controlPlaneInitialized: true }),
  };
  return {
    // It may not be empty.
    ...(Object.keys(initialization).length > 0 && { initialization }),
    phase: wasProvisioned ? 'Provisioned' : cluster.spec?.infrastructureRef === undefined ? 'Pending' : 'Provisioning',
    ...(infrastructure.report?.failureDomains !== undefined && {
      failureDomains: infrastructure.report.failureDomains,
    }),
  };
}
