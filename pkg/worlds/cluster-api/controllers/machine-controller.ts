import { isDeepStrictEqual } from 'node:util';

import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ContractReference } from '../api/contract.ts';
import {
  CLUSTER_NAME_LABEL,
  HAD_CONTROL_PLANE_ANNOTATION,
  HAD_KUBECONFIG_ANNOTATION,
  CLUSTER_API_MACHINE_FINALIZER,
  NODE_CLUSTER_ANNOTATION,
  PAUSED_ANNOTATION,
} from '../api/keys.ts';
import type { ClusterAPIMachine, ClusterAPIMachineStatus, DeprecatedCondition } from '../api/machine.ts';
import { copyOfObject } from '../../../apis/copy.ts';
import { withFinalizer, hasFinalizer } from '../../../apis/finalizers.ts';
import { isBeingDeleted, keyBeside, keyOf, refOf } from '../../../apis/meta.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError, ignoreNotFound, isConflict } from '../../../kube/client/errors.ts';
import { replacing } from '../../../kube/client/merge-change.ts';
import { mergePatch, statusPatch } from '../../../kube/client/patch.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { type FieldPath, ownedPatch } from '../../../work/reconcile/object-pass/owned-fields.ts';
import { PassNotes } from '../../../work/reconcile/object-pass/pass-notes.ts';
import { isRelease, writeRecord } from '../../../work/reconcile/object-pass/record.ts';
import { runPass } from '../../../work/reconcile/object-pass/run-pass.ts';
import { requeue, runSteps, stop, type StepResult } from '../../../work/reconcile/result.ts';
import {
  availableInMs,
  deprecatedConditions,
  clusterAPIMachineConditions,
  merged,
  clusterAPIPhaseOf,
  plain,
} from './conditions.ts';
import { creationSteps } from './creation-steps.ts';
import { withDefaults } from './defaults.ts';
import { deletionSteps } from './deletion-steps.ts';
import { clusterAPIQueueKeyOf } from './keys.ts';
import type { MachinePass, ClusterAPIMachineStep, StepDeps, WorkingMachine, ControllerDeps } from './machine-pass.ts';
import { foundIn, machineEventsOf } from './machine-events.ts';
import type { NodeCluster } from './node-clusters.ts';
import { olderConditions } from './older-conditions.ts';
import { revisionOwnersOf } from './outdated.ts';
import { isOfControlPlane, ownersOfMachine } from './adoption.ts';
import { upToDateOf } from './up-to-date.ts';

export type ClusterAPIMachineControllerDeps = StepDeps & ControllerDeps<ClusterAPIMachine>;

const RECORD = { resource: clusterAPIMachines, finalizer: CLUSTER_API_MACHINE_FINALIZER };

const OWNED_FIELDS: readonly FieldPath[] = [
  ['metadata', 'finalizers'],
  ['metadata', 'ownerReferences'],
  ['metadata', 'annotations', NODE_CLUSTER_ANNOTATION],
  ['metadata', 'labels', CLUSTER_NAME_LABEL],
  ['spec', 'providerID'],
  ['spec', 'version'],
  ['spec', 'deletion', 'nodeDeletionTimeoutSeconds'],
  ['spec', 'failureDomain'],
  ['spec', 'bootstrap', 'dataSecretName'],
];

/** When what was refused is tried again. */
const AGAIN_MS = 20_000;

/**
 * Looks after Machines of Cluster API: owns what they name, takes over what that says, finds their Nodes, and takes all of it away.
 *
 *   finalizer ─▶ bootstrap ─▶ infrastructure ─▶ Node         each in every pass, whatever the others do
 *   deleted:  …then the steps of deletion-steps.ts, each when the one before is done
 *
 * A pass writes at most one patch of the Machine and one of its status, only of fields that are its own.
 */
export class ClusterAPIMachineController {
  readonly #deps: ClusterAPIMachineControllerDeps;
  readonly #creation: readonly ClusterAPIMachineStep[];
  readonly #deletion: readonly ClusterAPIMachineStep[];
  /** What the last pass over each Machine has found, by its key. */
  readonly #found = new Map<string, ReadonlySet<string>>();

  constructor(deps: ClusterAPIMachineControllerDeps) {
    this.#deps = deps;
    this.#creation = creationSteps(deps);
    this.#deletion = deletionSteps(deps);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { machines, clusters, externals, nodeClusters, drains, isServed } = this.#deps;
    const observed = machines.get(key);
    const user = clusterAPIQueueKeyOf('Machine', key);
    drains.forgetAll(user, observed?.metadata.uid);
    const isDone = observed !== undefined && isBeingDeleted(observed) && !isHeld(observed);
    if (observed === undefined || isDone || !isServed(observed)) {
      externals.drop(user);
      nodeClusters.drop(user);
      this.#found.delete(user);
      return stop;
    }
    const clusterKey = keyBeside(observed, observed.spec?.clusterName ?? '');
    const cluster = clusters.get(clusterKey);
    const owners = revisionOwnersOf(observed, (reference) => externals.find(observed, reference));
    const controlPlane = isBeingDeleted(observed) ? (cluster?.spec?.controlPlaneRef ?? []) : [];
    externals.use(user, observed, [...referencesOf(observed), ...owners, controlPlane].flat());
    nodeClusters.use(user, clusterKey);
    const machine = workingCopy(observed);
    const pauses = pausesOf(observed, cluster);
    if (pauses !== '') return await this.#reportPaused(observed, pauses, signal);
    if (cluster === undefined) return await this.#reportAlone(observed, machine, signal);
    if (!isBeingDeleted(observed) && !isHeld(observed)) {
      machine.metadata.finalizers = withFinalizer(machine, CLUSTER_API_MACHINE_FINALIZER);
      this.#adopt(machine, cluster);
      await this.#writeRecord(observed, machine, signal);
      return requeue(0, 'the finalizer to be recorded');
    }
    this.#adopt(machine, cluster);
    // One that goes has no use for them: they are obeyed all the same.
    if (!isBeingDeleted(observed)) machine.spec = withDefaults(machine.spec);
    const refusal = await this.#remember(cluster, machine, signal);
    const pass: MachinePass = {
      observed,
      machine,
      cluster,
      key: user,
      nodeCluster: refusal ?? nodeClusters.of(cluster, observed),
      signal,
      infrastructure: { kind: 'reading' },
      bootstrap: { kind: 'reading' },
      node: { kind: 'none' },
      dataSecret: undefined,
      upToDate: undefined,
      care: 'cared-for',
      older: [],
      deleting: undefined,
      problems: [],
      failures: [],
      notes: new PassNotes(),
    };
    if (refusal !== undefined) pass.notes.alsoAfter(AGAIN_MS, refusal.why);
    return await runPass(
      pass.notes,
      () => this.#run(pass),
      () => this.#finish(pass),
    );
  }

  /**
   * A Cluster remembers what cannot be seen any more when it is gone. Before its kubeconfig is used for the first time, that it has one: without, Machines
   * whose Nodes nobody has marked would be looked for in another cluster when the Secret is gone, and go undrained; what refuses that keeps it
   * from being used. And that it has a control plane of Machines: without, the last Machines would wait for an API server that went with that.
   */
  async #remember(
    cluster: ClusterAPICluster,
    machine: WorkingMachine,
    signal: AbortSignal,
  ): Promise<(NodeCluster & { readonly kind: 'unreachable' }) | undefined> {
    const { nodeClusters, writer } = this.#deps;
    if (isBeingDeleted(cluster)) return undefined;
    const isMember = isOfControlPlane(machine) && machine.status.nodeRef !== undefined;
    const facts: readonly (readonly [string, boolean])[] = [
      [HAD_KUBECONFIG_ANNOTATION, nodeClusters.isApart(keyOf(cluster))],
      [HAD_CONTROL_PLANE_ANNOTATION, isMember],
    ];
    const news = facts.flatMap(([name, holds]) =>
      holds && cluster.metadata.annotations?.[name] === undefined ? [name] : [],
    );
    if (news.length === 0) return undefined;
    const annotations = Object.fromEntries(news.map((name) => [name, 'true']));
    const patch = mergePatch(cluster, { metadata: { annotations } });
    try {
      await writer.patch('change', clusterAPIClusters, refOf(cluster), patch, { signal });
      return undefined;
    } catch (err) {
      if (!(err instanceof ApiError)) throw err;
      if (!news.includes(HAD_KUBECONFIG_ANNOTATION)) return undefined;
      const why = `annotation ${HAD_KUBECONFIG_ANNOTATION} cannot be written on Cluster ${cluster.metadata.name}: ${err.message}`;
      // It is not used; whether it would answer is another question.
      return { kind: 'unreachable', why, sinceMs: Number.NEGATIVE_INFINITY, lostSinceMs: undefined };
    }
  }

  /** Finds out whether it is as its MachineDeployment wants it. */
  #compare(pass: MachinePass): void {
    const { externals, clock } = this.#deps;
    const { machine } = pass;
    const compared = upToDateOf(machine, (reference) => externals.find(machine, reference), clock.now());
    pass.upToDate = compared?.said;
    if (compared?.changesInMs !== undefined) {
      pass.notes.alsoAfter(compared.changesInMs, 'rollout.after of its MachineDeployment');
    }
  }

  /** A Machine shows its Cluster, and goes with it unless somebody else made it. */
  #adopt(machine: WorkingMachine, cluster: ClusterAPICluster): void {
    if (isBeingDeleted(machine)) return;
    const { name } = cluster.metadata;
    machine.metadata.labels = { ...machine.metadata.labels, [CLUSTER_NAME_LABEL]: name };
    const owners = ownersOfMachine(machine, cluster, this.#deps.servedAs(clusterAPIClusters));
    if (owners !== undefined) machine.metadata.ownerReferences = [...owners];
  }

  /** Runs the steps: those of creation all, those of deletion one after the other. What they throw is gathered. */
  async #run(pass: MachinePass): Promise<StepResult> {
    const { failures } = pass;
    const attempt = async (steps: readonly ClusterAPIMachineStep[]): Promise<void> => {
      const [ended] = await Promise.allSettled([runSteps(steps, pass)]);
      if (ended.status === 'rejected') failures.push(ended.reason);
    };
    for (const step of this.#creation) await attempt([step]);
    if (isBeingDeleted(pass.machine) && failures.length === 0) await attempt(this.#deletion);
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '));
    return stop;
  }

  /** Says in conditions what the steps have found, and writes. */
  async #finish(pass: MachinePass): Promise<void> {
    const { machine, failures, notes } = pass;
    const { clock } = this.#deps;
    // It says nothing about the Machine: the next pass sees what has changed, or may write again.
    for (const err of failures) if (isConflict(err) || err instanceof GateClosedError) throw err;
    this.#compare(pass);
    pass.problems.push(...failures.map((err) => (err instanceof Error ? err.message : String(err))));
    machine.status.conditions = clusterAPIMachineConditions(pass, clock.now());
    const older = machine.status.deprecated?.v1beta1?.conditions ?? [];
    showOlder(machine, deprecatedConditions(older, olderConditions(pass, pass.older, older), clock.now()));
    await this.#write(pass);
    const availableMs = availableInMs(machine, clock.now());
    if (availableMs !== undefined) notes.alsoAfter(availableMs, 'minReadySeconds');
  }

  async #write(pass: MachinePass): Promise<void> {
    const { observed, machine, key, signal, deleting, notes } = pass;
    const { recorder } = this.#deps;
    const isReleased = isRelease(CLUSTER_API_MACHINE_FINALIZER, observed, machine);
    const written = await this.#writeRecord(observed, machine, signal);
    if (!isReleased) {
      if (written === undefined) return;
      await this.#writeStatus(observed, machine, written, signal);
    }
    const problems = [...pass.problems, ...problemsIn(pass)];
    const found = { problems, deleting, foundBefore: this.#found.get(key) };
    const news = isReleased ? [] : machineEventsOf(observed, machine, found);
    this.#found.set(key, foundIn(found));
    notes.complete((event) => recorder.event({ object: observed, ...event }));
    for (const event of news) recorder.event({ object: observed, ...event });
  }

  /** What is outside of the status; undefined: the Machine is gone. */
  async #writeRecord(
    observed: ClusterAPIMachine,
    machine: WorkingMachine,
    signal: AbortSignal,
  ): Promise<ClusterAPIMachine | undefined> {
    const patch = ownedPatch(observed, machine, OWNED_FIELDS);
    return await writeRecord(this.#deps.writer, RECORD, { observed, after: machine, patch }, signal);
  }

  async #writeStatus(
    observed: ClusterAPIMachine,
    machine: WorkingMachine,
    base: ClusterAPIMachine,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, writer } = this.#deps;
    const { status } = machine;
    const phase = clusterAPIPhaseOf(machine);
    if (status.phase !== phase) status.lastUpdated = toTimestamp(clock.now());
    status.phase = phase;
    status.observedGeneration = base.metadata.generation ?? 0;
    const change = replacing<ClusterAPIMachineStatus>(observed.status ?? {}, status);
    if (change === null || Object.keys(change).length === 0) return;
    const patch = statusPatch(base, change);
    await writer.patch('change', clusterAPIMachines, refOf(observed), patch, { signal }).catch(ignoreNotFound);
  }

  /** Nothing but that is written while somebody else, or nobody, is to look after it. */
  async #reportPaused(observed: ClusterAPIMachine, pauses: string, signal: AbortSignal): Promise<StepResult> {
    const paused = plain('Paused', 'True', 'Paused', pauses);
    const before = observed.status?.conditions ?? [];
    const conditions = merged(before, [paused], this.#deps.clock.now(), observed.metadata.generation);
    if (isDeepStrictEqual(conditionOf(before, 'Paused'), conditionOf(conditions, 'Paused'))) {
      return stop;
    }
    const patch = statusPatch(observed, { conditions });
    await this.#deps.writer.patch('change', clusterAPIMachines, refOf(observed), patch, { signal });
    if (before.some(({ type, status }) => type === 'Paused' && status === 'True')) return stop;
    const message = `Not reconciled and not deleted: ${pauses}`;
    this.#deps.recorder.event({ object: observed, type: 'Normal', reason: 'Paused', message });
    return stop;
  }

  /** Without its Cluster nobody knows whether the Node has to be drained: nothing is done, not even for its deletion. */
  async #reportAlone(observed: ClusterAPIMachine, machine: WorkingMachine, signal: AbortSignal): Promise<StepResult> {
    const name = machine.spec.clusterName ?? '';
    const message = `Cluster ${name} does not exist: create it, or correct spec.clusterName in a new Machine`;
    const said = plain('Ready', 'False', 'NotReady', `* Problem: ${message}`);
    const before = observed.status?.conditions ?? [];
    machine.status.conditions = merged(before, [said], this.#deps.clock.now(), observed.metadata.generation);
    const isNews = conditionOf(before, 'Ready')?.message !== said.message;
    await this.#writeStatus(observed, machine, observed, signal);
    if (isNews) this.#deps.recorder.event({ object: observed, type: 'Warning', reason: 'Problem', message });
    return stop;
  }
}

function showOlder({ status }: WorkingMachine, conditions: readonly DeprecatedCondition[]): void {
  status.deprecated = { ...status.deprecated, v1beta1: { ...status.deprecated?.v1beta1, conditions } };
}

function referencesOf({ spec }: ClusterAPIMachine): readonly ContractReference[] {
  return [spec?.bootstrap?.configRef, spec?.infrastructureRef].filter((one) => one !== undefined);
}

/** Why nothing is to be done about a Machine, in the words of Cluster API; empty: it is not paused. */
function pausesOf({ metadata }: ClusterAPIMachine, cluster: ClusterAPICluster | undefined): string {
  const isMarked = metadata.annotations?.[PAUSED_ANNOTATION] !== undefined;
  return [
    ...(cluster?.spec?.paused === true ? ['Cluster spec.paused is set to true'] : []),
    ...(isMarked ? [`Machine has the ${PAUSED_ANNOTATION} annotation`] : []),
  ].join(', ');
}

function isHeld(machine: ClusterAPIMachine): boolean {
  return hasFinalizer(machine, CLUSTER_API_MACHINE_FINALIZER);
}

function workingCopy(observed: ClusterAPIMachine): WorkingMachine {
  const copy = copyOfObject(observed);
  return { ...copy, spec: copy.spec ?? {}, status: copy.status ?? {} };
}

/** What somebody has to look at, of what the pass has found. */
function problemsIn({ infrastructure, bootstrap, node }: MachinePass): readonly string[] {
  return [infrastructure, bootstrap, node].flatMap((seen) => ('problem' in seen ? [seen.problem] : []));
}
