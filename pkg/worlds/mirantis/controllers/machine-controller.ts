import { hasFinalizer, withFinalizer, ORPHAN_FINALIZER } from '../../../apis/finalizers.ts';
import { FRONT_END_FINALIZER, MADE_MACHINE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { mayChangeClass } from '../../../apis/machine/v1alpha1/class-change.ts';
import { classNameOf, nodeNameOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { controllerOf, isBeingDeleted, keyBeside, keyOf, refOf } from '../../../apis/meta.ts';
import { FLOATING_IP_ANNOTATION, type ClusterMachine } from '../api/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import type { Lister } from '../../../kube/cache/lister.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';
import { ignoreNotFound, ignoreAlreadyExists } from '../../../kube/client/errors.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch, type MergePatch } from '../../../kube/client/patch.ts';
import { machines } from '../../../kube/client/resource.ts';
import { clusterMachines } from '../api/resources.ts';
import { Finalizer } from '../../../work/reconcile/finalizer.ts';
import type { FieldPath } from '../../../work/reconcile/object-pass/owned-fields.ts';
import { requeue, stop, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { isMaintenanceRequested } from '../../../controllers/machine-facts/maintenance.ts';
import { concernedTargets } from '../../../controllers/replicas/concerned-targets.ts';
import { reportableChanges } from './events.ts';
import type { FrontEndKind, FrontEndPass, FrontEndOutcome, FrontEndStatus } from './front-end-pass.ts';
import { runFrontEndPass, runLastPass } from './front-end-pass.ts';
import { isServed, checkAgain } from './front-end.ts';
import { shownUpgradeIndexes, ipAddressOf, providerStatusOf, wrongConditions } from './provider-status.ts';
import { isDeletionRequested, readProviderValue, type ProviderValue } from './provider-value.ts';
import type { Problem } from './field-reader.ts';
import { changeOfStatus } from './reported-status.ts';
import {
  areOne,
  changeFor,
  changeOfPooled,
  clusterNameOf,
  fixedFieldsChanged,
  isOfPool,
  desiredMachine,
  ownershipBy,
} from './desired-machine.ts';
import type { MirantisCollaborators } from './collaborators.ts';

type Shared = 'clusters' | 'madeClasses' | 'reader' | 'writer' | 'targets' | 'log';

interface Deps extends Pick<MirantisCollaborators, 'clusterMachines' | 'machines' | 'classes' | Shared> {
  /** Undefined without a target cluster. */
  readonly nodes: Lister<Node> | undefined;
  readonly recorder: ObjectEvents<ClusterMachine>;
}

type Pass = FrontEndPass<ClusterMachine>;

const OWNED_FIELDS: readonly FieldPath[] = [
  ['metadata', 'finalizers'],
  ['metadata', 'annotations', MADE_MACHINE_ANNOTATION],
  ['metadata', 'annotations', FLOATING_IP_ANNOTATION],
];

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
  readonly #deps: Deps;
  readonly #finalizer: Finalizer<ClusterMachine>;
  readonly #kind: FrontEndKind<ClusterMachine>;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, clusterMachines, FRONT_END_FINALIZER);
    const statusOf = this.#statusOf.bind(this);
    this.#kind = { ...deps, resource: clusterMachines, owned: OWNED_FIELDS, statusOf };
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const machine = this.#deps.clusterMachines.get(key);
    if (machine === undefined) return stop;
    const ours = this.#oursOf(machine);
    if (isBeingDeleted(machine))
      return this.#finalizer.holds(machine) ? await this.#finish(machine, ours, signal) : stop;
    if (!isServed(machine)) return stop;
    if (ours === undefined && hasHadItsMachine(machine)) return await this.#follow(machine, signal);

    const result = await runFrontEndPass(this.#kind, machine, signal, (pass) => this.#sync(pass, ours));
    await this.#deps.madeClasses.removeUnused(machine.metadata.namespace, signal);
    return result;
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

  async #sync(pass: Pass, ours: Machine | undefined): Promise<FrontEndOutcome> {
    const { value, problems } = readProviderValue(pass.observed);
    if (value === undefined) return { problems };
    const admitted = this.#admitted(pass.observed, ours, value);
    const synced = await (ours === undefined
      ? this.#make(pass, admitted.value)
      : this.#update(pass, ours, admitted.value));
    return { ...synced, problems: [...(synced.problems ?? []), ...admitted.problems] };
  }

  async #make({ observed, object, signal }: Pass, value: ProviderValue): Promise<FrontEndOutcome> {
    const { machines: known, madeClasses, writer, log } = this.#deps;
    if (known.get(keyOf(observed)) !== undefined) {
      const problem = `metadata.name: a Machine of machine.sapcloud.io has this name and belongs to another owner; choose another name`;
      return { problems: [problem], again: checkAgain('the other Machine to be deleted') };
    }
    const wanted = await madeClasses.usedBy(observed, value.server, signal);
    if (wanted.value === undefined) return { problems: wanted.problems, again: checkAgain('settings') };
    if (!this.#finalizer.holds(observed)) {
      object.metadata.finalizers = withFinalizer(observed, FRONT_END_FINALIZER);
      return { again: requeue(0, 'the cache to show the finalizer') };
    }
    const problems = await madeClasses.provide(wanted.value, signal);
    if (problems.length > 0) return { problems, again: checkAgain('the class to be deleted') };
    const ours = desiredMachine(observed, value, wanted.value.metadata.name);
    const made = await writer.create('create', machines, ours, { signal }).catch(ignoreAlreadyExists);
    if (made === undefined) return { again: checkAgain('the cache to show the Machine of its name') };
    log.info({ machine: keyOf(made) }, 'created machine for a machine of cluster.k8s.io');
    this.#note(object, made);
    return {};
  }

  async #update({ observed, object, signal }: Pass, ours: Machine, value: ProviderValue): Promise<FrontEndOutcome> {
    this.#note(object, ours);
    const hasServer = providerIDOf(ours) !== '' || isBeingDeleted(ours);
    const isPooled = isOfPool(observed);
    const { className, problems } =
      isPooled || hasServer ? this.#fixed(ours, value, isPooled) : await this.#follows(observed, ours, value, signal);
    const change = isPooled ? changeOfPooled(ours, value) : changeFor(ours, value, className ?? classNameOf(ours));
    if (change !== undefined) {
      await this.#deps.writer.patch('change', machines, refOf(ours), mergePatch(ours, change), { signal });
    }
    const isWaiting = !isPooled && !hasServer && problems.length > 0;
    return { problems, ...(isWaiting && { again: checkAgain('settings') }) };
  }

  /** Of a machine that has a server no class can change, and that of a pool is its pool's: what is asked for in vain is named. */
  #fixed(ours: Machine, value: ProviderValue, isPooled: boolean): ClassFit {
    const changed = this.#changedFields(ours, value);
    const why = isPooled
      ? 'the server still has the former value; the rollout of the pool replaces it'
      : 'cannot be changed once the server exists; change it back, or create another Machine';
    return { problems: changed === '' ? [] : [`${changed}: ${why}`] };
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
  #note(object: ClusterMachine, ours: Machine): void {
    const floating = ipAddressOf({ ours, node: this.#nodeOf(ours) }, 'ExternalIP');
    object.metadata.annotations = {
      ...object.metadata.annotations,
      [MADE_MACHINE_ANNOTATION]: `${noteOf(object)}${ours.metadata.uid}`,
      ...(floating !== undefined && { [FLOATING_IP_ANNOTATION]: floating }),
    };
  }

  /** The Machine that was made for it is there, but somebody has taken the reference off. */
  async #adopt(machine: ClusterMachine, ours: Machine, signal: AbortSignal): Promise<void> {
    const { writer, log } = this.#deps;
    // A conflict where the cache is old: it may be being deleted with `--cascade=orphan`, for which the reference was taken off.
    const held = mergePatchIfUnchanged(machine, {
      metadata: { finalizers: withFinalizer(machine, FRONT_END_FINALIZER) },
    });
    await writer.patch('change', clusterMachines, refOf(machine), held, { signal });
    const ownerReferences = [...(ours.metadata.ownerReferences ?? []), ownershipBy(machine)];
    const owned = mergePatchIfUnchanged(ours, { metadata: { ownerReferences } });
    await writer.patch('change', machines, refOf(ours), owned, { signal });
    log.info({ machine: keyOf(ours) }, 'adopted the machine of a machine of cluster.k8s.io');
  }

  /** Its Machine was asked to go and is gone, or somebody has deleted it: it goes too, unless that was taken back in time. */
  async #follow(machine: ClusterMachine, signal: AbortSignal): Promise<StepResult> {
    const named = await this.#live(machine, signal);
    if (named !== undefined && areOne(machine, named)) return checkAgain('the cache to show its Machine');
    const { uid, resourceVersion } = machine.metadata;
    const preconditions = { uid, resourceVersion };
    return await runLastPass(this.#kind, machine, signal, async () => {
      if (named !== undefined && hasLost(machine, named)) {
        await this.#adopt(machine, named, signal);
        return checkAgain('the cache to show its Machine');
      }
      await this.#deps.writer.delete('destroy', clusterMachines, refOf(machine), preconditions, { signal });
      return waitFor('its deletion');
    });
  }

  /** DELETE of it is DELETE of ours; the finalizer goes when that is gone. With `--cascade=orphan`, ours stays. */
  async #finish(machine: ClusterMachine, ours: Machine | undefined, signal: AbortSignal): Promise<StepResult> {
    const { writer, targets } = this.#deps;
    if (hasFinalizer(machine, ORPHAN_FINALIZER)) return waitFor('its Machine to be orphaned');
    if (ours === undefined) {
      if (!(await this.#isGone(machine, signal))) return checkAgain('the cache to show its Machine');
      await this.#deps.madeClasses.removeUnused(machine.metadata.namespace, signal);
      return await runLastPass(this.#kind, machine, signal, async () => {
        await this.#finalizer.remove(machine, signal);
        return stop;
      });
    }
    return await runFrontEndPass(this.#kind, machine, signal, async () => {
      const { value, problems = [] } = readProviderValue(machine);
      const admitted = value && this.#admitted(machine, ours, value);
      // Before the deletion: it goes by the policy that is wanted now. Neither happens to one that is orphaned, which the cache may not show yet.
      const change = admitted && changeOf(machine, ours, admitted.value);
      const current =
        change === undefined
          ? ours
          : await writer.patch('change', machines, refOf(ours), mergePatchIfUnchanged(ours, change), { signal });
      if (!isBeingDeleted(current)) {
        const clusters = concernedTargets(targets, [ours]);
        const { uid, resourceVersion } = current.metadata;
        await writer.delete('destroy', machines, refOf(ours), { uid, resourceVersion }, { signal, clusters });
      }
      return { problems: [...problems, ...(admitted?.problems ?? [])], again: waitFor('its Machine to be gone') };
    });
  }

  /** Whether the API server itself shows no Machine of it. */
  async #isGone(machine: ClusterMachine, signal: AbortSignal): Promise<boolean> {
    const named = await this.#live(machine, signal);
    return named === undefined || !areOne(machine, named);
  }

  /** The Machine of its name, as the API server itself shows it. */
  async #live(machine: ClusterMachine, signal: AbortSignal): Promise<Machine | undefined> {
    return await this.#deps.reader.get(machines, refOf(machine), { signal }).catch(ignoreNotFound);
  }

  #statusOf(machine: ClusterMachine, problems: readonly Problem[]): FrontEndStatus | undefined {
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
    const { providerStatus: before } = machine.status ?? {};
    const after = providerStatusOf(known);
    const change = changeOfStatus(before, after);
    if (change === undefined) return undefined;
    return {
      patch: statusPatch(machine, { providerStatus: change }),
      events: reportableChanges(before?.conditions, after.conditions, wrongConditions(known)),
    };
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

/** Whether `named` is the very Machine that was made for it, and belongs to nobody. */
function hasLost(machine: ClusterMachine, named: Machine): boolean {
  const note = machine.metadata.annotations?.[MADE_MACHINE_ANNOTATION];
  return note === `${noteOf(machine)}${named.metadata.uid}` && controllerOf(named) === undefined;
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
