import { FRONT_END_FINALIZER, MADE_MACHINE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { mayChangeClass } from '../../apis/machine/v1alpha1/class-change.ts';
import { classNameOf, nodeNameOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyBeside, keyOf, refOf } from '../../apis/meta.ts';
import { FLOATING_IP_ANNOTATION, type ClusterMachine } from '../../apis/mirantis/machine.ts';
import type { Node } from '../../apis/wire.ts';
import type { Lister } from '../../cache/lister.ts';
import type { ObjectEvents } from '../../events/event-sink.ts';
import type { Reader, Writer } from '../../kube/client.ts';
import { ignoreNotFound, isAlreadyExists } from '../../kube/errors.ts';
import { mergePatch, statusPatch, type MergePatch } from '../../kube/patch.ts';
import { clusterMachines, machines } from '../../kube/resource.ts';
import type { Logger } from '../../log/logger.ts';
import { Finalizer } from '../../reconcile/finalizer.ts';
import { requeue, stop, waitFor, type StepResult } from '../../reconcile/result.ts';
import type { Targets } from '../../targets/targets.ts';
import { isMaintenanceRequested } from '../machines/maintenance.ts';
import { concernedTargets } from '../replicas/concerned-targets.ts';
import type { MirantisClusters } from './clusters.ts';
import { reportChanges } from './events.ts';
import { isRequestRejected, isServed, checkAgain, type Synced } from './front-end.ts';
import type { GeneratedClasses } from './generated-classes.ts';
import { ipAddressOf, providerStatusOf, wrongConditions } from './provider-status.ts';
import { isDeletionRequested, readProviderValue, type ProviderValue } from './provider-value.ts';
import type { Problem } from './field-reader.ts';
import { changeOfStatus } from './reported-status.ts';
import { shownUpgradeIndexes } from './upgrade-order.ts';
import {
  areOne,
  changeFor,
  changeOfPooled,
  clusterNameOf,
  fixedFieldsChanged,
  isOfPool,
  desiredMachine,
} from './desired-machine.ts';

export interface ClusterMachineControllerDeps {
  readonly clusterMachines: Lister<ClusterMachine>;
  readonly machines: Lister<Machine>;
  readonly classes: Lister<MachineClass>;
  /** Undefined without a target cluster. */
  readonly nodes: Lister<Node> | undefined;
  readonly clusters: Pick<MirantisClusters, 'of' | 'admitsMaintenance'>;
  readonly madeClasses: GeneratedClasses;
  /** Live reads: whether a Machine is gone. */
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Pick<Targets, 'of'>;
  readonly recorder: ObjectEvents<ClusterMachine>;
  readonly log: Logger;
}

/**
 * Makes of each Machine of Mirantis Container Cloud a Machine of ours, and tells what becomes of it.
 *
 *   cluster.k8s.io Machine ─ finalizer ─▶ MachineClass (shared) ─▶ our Machine, of the same name ─▶ UID on the first ─▶ its status
 *        ▲                                                                                        │
 *        └─────────────────── goes when ours is gone ◀────────────────────────────────────────────┘
 *
 * One that shows a Machine of a pool belongs to that Machine instead of the other way round; what is asked of it alone is passed on.
 * Each pass begins anew from what is there, so that any write may be the last one.
 */
export class ClusterMachineController {
  readonly #deps: ClusterMachineControllerDeps;
  readonly #finalizer: Finalizer<ClusterMachine>;

  constructor(deps: ClusterMachineControllerDeps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, clusterMachines, FRONT_END_FINALIZER);
  }

  /** One pass over one Machine. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const machine = this.#deps.clusterMachines.get(key);
    if (machine === undefined) return stop;
    const ours = this.#oursOf(machine);
    if (isBeingDeleted(machine))
      return this.#finalizer.holds(machine) ? await this.#finish(machine, ours, signal) : stop;
    if (!isServed(machine)) return stop;
    if (ours === undefined && hasHadItsMachine(machine)) return await this.#follow(machine, signal);

    const { value, problems } = readProviderValue(machine);
    const admitted = value && this.#admitted(machine, ours, value);
    const synced =
      admitted === undefined
        ? { object: machine, problems: problems ?? [] }
        : await this.#sync(machine, ours, admitted.value, signal);
    await this.#report({ ...synced, problems: [...synced.problems, ...(admitted?.problems ?? [])] }, signal);
    await this.#deps.madeClasses.removeUnused(machine.metadata.namespace, signal);
    return synced.again ?? stop;
  }

  #oursOf(machine: ClusterMachine): Machine | undefined {
    const named = this.#deps.machines.get(keyOf(machine));
    return named !== undefined && areOne(machine, named) ? named : undefined;
  }

  /** What is asked for, without a maintenance for which the Cluster is not in maintenance. One that has begun goes on. */
  #admitted(
    machine: ClusterMachine,
    ours: Machine | undefined,
    value: ProviderValue,
  ): { readonly value: ProviderValue; readonly problems: readonly Problem[] } {
    const { clusters } = this.#deps;
    const cluster = clusters.of(machine);
    const hasBegun = ours !== undefined && isMaintenanceRequested(ours, undefined);
    if (!value.maintenance || hasBegun || cluster === undefined || clusters.admitsMaintenance(cluster)) {
      return { value, problems: [] };
    }
    const { name } = cluster.metadata;
    const problem = `spec.providerSpec.value.maintenance: Cluster ${name} is not in maintenance; set it there first (ClusterNotInMaintenance)`;
    return { value: { ...value, maintenance: false }, problems: [problem] };
  }

  /** Makes our Machine, or has it follow. What the API server refuses is a problem of the object. */
  async #sync(
    machine: ClusterMachine,
    ours: Machine | undefined,
    value: ProviderValue,
    signal: AbortSignal,
  ): Promise<Synced<ClusterMachine>> {
    try {
      return ours === undefined
        ? await this.#make(machine, value, signal)
        : await this.#update(machine, ours, value, signal);
    } catch (err) {
      if (!isRequestRejected(err)) throw err;
      const problem = `refused by the API server: ${err.message}`;
      return { object: machine, problems: [problem], again: checkAgain('the API server to accept the update') };
    }
  }

  async #make(machine: ClusterMachine, value: ProviderValue, signal: AbortSignal): Promise<Synced<ClusterMachine>> {
    const { machines: known, writer, log } = this.#deps;
    if (known.get(keyOf(machine)) !== undefined) {
      const problem = `metadata.name: a Machine of machine.sapcloud.io has this name and belongs to another owner; choose another name`;
      return { object: machine, problems: [problem], again: checkAgain('the other Machine to be deleted') };
    }
    const wanted = await this.#deps.madeClasses.usedBy(machine, value.server, signal);
    if (wanted.value === undefined)
      return { object: machine, problems: wanted.problems, again: checkAgain('settings') };
    if (!this.#finalizer.holds(machine)) {
      const held = await this.#finalizer.add(machine, signal);
      return { object: held, problems: [], again: requeue(0, 'the cache to show the finalizer') };
    }
    const problems = await this.#deps.madeClasses.provide(wanted.value, signal);
    if (problems.length > 0) return { object: machine, problems, again: checkAgain('the class to be deleted') };
    try {
      const made = await writer.create('create', machines, desiredMachine(machine, value, wanted.value.metadata.name), {
        signal,
      });
      log.info({ machine: keyOf(made) }, 'created machine for a machine of cluster.k8s.io');
      return { object: await this.#note(machine, made, signal), problems: [] };
    } catch (err) {
      if (!isAlreadyExists(err)) throw err;
      return { object: machine, problems: [], again: checkAgain('the cache to show the Machine of its name') };
    }
  }

  async #update(
    machine: ClusterMachine,
    ours: Machine,
    value: ProviderValue,
    signal: AbortSignal,
  ): Promise<Synced<ClusterMachine>> {
    const noted = await this.#note(machine, ours, signal);
    if (isOfPool(machine)) return await this.#passOn(noted, ours, value, signal);
    const hasServer = providerIDOf(ours) !== '' || isBeingDeleted(ours);
    const fit = hasServer ? this.#fixed(ours, value) : await this.#follows(machine, ours, value, signal);
    const className = fit.className ?? classNameOf(ours);
    const change = changeFor(ours, value, className);
    if (change !== undefined) {
      const patch = mergePatch(ours, change);
      await this.#deps.writer.patch('change', machines, refOf(ours), patch, { signal });
    }
    const isWaiting = !hasServer && fit.problems.length > 0;
    return { object: noted, problems: fit.problems, ...(isWaiting && { again: checkAgain('settings') }) };
  }

  /** What is asked of a Machine of a pool alone; the rest is its pool's. */
  async #passOn(
    machine: ClusterMachine,
    ours: Machine,
    value: ProviderValue,
    signal: AbortSignal,
  ): Promise<Synced<ClusterMachine>> {
    const change = changeOfPooled(ours, value);
    if (change !== undefined) {
      await this.#deps.writer.patch('change', machines, refOf(ours), mergePatch(ours, change), { signal });
    }
    const changed = this.#changedFields(ours, value);
    const problem = `${changed}: the server still has the former value; the rollout of the pool replaces it`;
    return { object: machine, problems: changed === '' ? [] : [problem] };
  }

  /** Of a machine that has a server no class can change; what is asked for in vain is named. */
  #fixed(ours: Machine, value: ProviderValue): ClassFit {
    const changed = this.#changedFields(ours, value);
    if (changed === '') return { problems: [] };
    return {
      problems: [`${changed}: cannot be changed once the server exists; change it back, or create another Machine`],
    };
  }

  /** Fields that say something else than the class of our Machine; empty: none. */
  #changedFields(ours: Machine, { server }: ProviderValue): string {
    const machineClass = this.#deps.classes.get(keyBeside(ours, classNameOf(ours)));
    const changed = machineClass === undefined ? [] : fixedFieldsChanged(server, machineClass);
    return changed.map((field) => `spec.providerSpec.value.${field}`).join(', ');
  }

  /** A machine without a server yet follows what was corrected, but not while one may be being made. */
  async #follows(machine: ClusterMachine, ours: Machine, value: ProviderValue, signal: AbortSignal): Promise<ClassFit> {
    const wanted = await this.#deps.madeClasses.usedBy(machine, value.server, signal);
    if (wanted.value === undefined) return { problems: wanted.problems };
    if (wanted.value.metadata.name !== classNameOf(ours) && !mayChangeClass(ours)) return { problems: [] };
    const problems = await this.#deps.madeClasses.provide(wanted.value, signal);
    return problems.length > 0 ? { problems } : { problems, className: wanted.value.metadata.name };
  }

  /** Remembers which Machine was made: when that one is gone, this one goes too. Shows its floating IP. */
  async #note(machine: ClusterMachine, ours: Machine, signal: AbortSignal): Promise<ClusterMachine> {
    const { annotations = {} } = machine.metadata;
    const floating = ipAddressOf({ ours, node: this.#nodeOf(ours) }, 'ExternalIP');
    const note = `${noteOf(machine)}${ours.metadata.uid}`;
    const isNew = annotations[MADE_MACHINE_ANNOTATION] !== note;
    const isMoved = floating !== undefined && annotations[FLOATING_IP_ANNOTATION] !== floating;
    if (!isNew && !isMoved) return machine;
    const change = {
      ...(isNew && { [MADE_MACHINE_ANNOTATION]: note }),
      ...(isMoved && { [FLOATING_IP_ANNOTATION]: floating }),
    };
    const patch = mergePatch(machine, { metadata: { annotations: change } });
    return await this.#deps.writer.patch('change', clusterMachines, refOf(machine), patch, { signal });
  }

  /** Its Machine was asked to go and is gone, or somebody has deleted it: it goes too, unless that was taken back in time. */
  async #follow(machine: ClusterMachine, signal: AbortSignal): Promise<StepResult> {
    if (!(await this.#isGone(machine, signal))) return checkAgain('the cache to show its Machine');
    const { uid, resourceVersion } = machine.metadata;
    const preconditions = { uid, resourceVersion };
    await this.#deps.writer.delete('destroy', clusterMachines, refOf(machine), preconditions, { signal });
    return waitFor('its deletion');
  }

  /** DELETE of it is DELETE of ours; the finalizer goes when that is gone. */
  async #finish(machine: ClusterMachine, ours: Machine | undefined, signal: AbortSignal): Promise<StepResult> {
    const { writer, targets } = this.#deps;
    if (ours === undefined) {
      if (!(await this.#isGone(machine, signal))) return checkAgain('the cache to show its Machine');
      await this.#deps.madeClasses.removeUnused(machine.metadata.namespace, signal);
      await this.#finalizer.remove(machine, signal);
      return stop;
    }
    const { value, problems = [] } = readProviderValue(machine);
    // Before the deletion: it goes by the policy that is wanted now.
    const change = value === undefined ? undefined : changeOf(machine, ours, value);
    const current =
      change === undefined
        ? ours
        : await writer.patch('change', machines, refOf(ours), mergePatch(ours, change), { signal });
    if (!isBeingDeleted(current)) {
      const clusters = concernedTargets(targets, [ours]);
      await writer.delete('destroy', machines, refOf(ours), { uid: ours.metadata.uid }, { signal, clusters });
    }
    await this.#report({ object: machine, problems }, signal);
    return waitFor('its Machine to be gone');
  }

  /** Whether the API server itself shows no Machine of it. */
  async #isGone(machine: ClusterMachine, signal: AbortSignal): Promise<boolean> {
    const named = await this.#deps.reader.get(machines, refOf(machine), { signal }).catch(ignoreNotFound);
    return named === undefined || !areOne(machine, named);
  }

  async #report({ object: machine, problems }: Synced<ClusterMachine>, signal: AbortSignal): Promise<void> {
    const ours = this.#oursOf(machine);
    const { namespace, name } = machine.metadata;
    const cluster = clusterNameOf(machine);
    const siblings = this.#deps.clusterMachines
      .list()
      .filter((one) => one.metadata.namespace === namespace && clusterNameOf(one) === cluster);
    const known = {
      machine,
      ours,
      node: ours && this.#nodeOf(ours),
      problems,
      upgradeIndex: shownUpgradeIndexes(siblings).get(name),
    };
    const after = providerStatusOf(known);
    const change = changeOfStatus(machine.status?.providerStatus, after);
    if (change === undefined) return;
    const patch = statusPatch(machine, { providerStatus: change });
    await this.#deps.writer.patch('change', clusterMachines, refOf(machine), patch, { signal });
    const { conditions } = machine.status?.providerStatus ?? {};
    reportChanges(this.#deps.recorder, machine, conditions, after.conditions, wrongConditions(known));
  }

  #nodeOf(ours: Machine): Node | undefined {
    return this.#deps.nodes?.get(nodeNameOf(ours));
  }
}

/** Which class a Machine shall have; undefined: the one that it has. */
interface ClassFit {
  readonly className?: string;
  readonly problems: readonly Problem[];
}

/** What still has to change of our Machine before it is deleted. */
function changeOf(machine: ClusterMachine, ours: Machine, value: ProviderValue): MergePatch<Machine> | undefined {
  return isOfPool(machine) ? changeOfPooled(ours, value) : changeFor(ours, value, classNameOf(ours));
}

/** Whether there has been a Machine for it, or must not be one any more. */
function hasHadItsMachine(machine: ClusterMachine): boolean {
  return (
    isOfPool(machine) ||
    machine.metadata.annotations?.[MADE_MACHINE_ANNOTATION]?.startsWith(noteOf(machine)) === true ||
    isDeletionRequested(machine)
  );
}

/** What the note begins with: one that was copied from another object, or restored from a backup, is not about this one. */
function noteOf({ metadata: { uid } }: ClusterMachine): string {
  return `${uid}/`;
}
