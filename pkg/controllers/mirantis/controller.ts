import { FRONT_END_FINALIZER, MADE_FOR_LABEL, MADE_MACHINE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { classNameOf, nodeNameOf, providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import { controllerOf, isBeingDeleted, keyBeside, keyOf, refOf } from '../../apis/meta.ts';
import {
  FLOATING_IP_ANNOTATION,
  PROVIDER_LABEL,
  REGION_LABEL,
  type ClusterMachine,
} from '../../apis/mirantis/machine.ts';
import type { Node } from '../../apis/wire.ts';
import type { Lister } from '../../cache/lister.ts';
import { CLASS_INDEX } from '../../indexes/class-index.ts';
import type { New, Reader, Writer } from '../../kube/client.ts';
import { ApiError, isAlreadyExists, isNotFound } from '../../kube/errors.ts';
import { replacing } from '../../kube/merge-change.ts';
import { mergePatch, mergePatchIfUnchanged, statusPatch } from '../../kube/patch.ts';
import { clusterMachines, configMaps, machineClasses, machines, secrets } from '../../kube/resource.ts';
import type { Logger } from '../../log/logger.ts';
import { requeue, stop, waitFor, type StepResult } from '../../reconcile/result.ts';
import type { Targets } from '../../targets/targets.ts';
import { concernedTargets } from '../replicas/concerned-targets.ts';
import { readClusterSettings, SETTINGS, type ClusterSettings } from './cluster-settings.ts';
import { addressOf, providerStatusOf } from './provider-status.ts';
import { asksDeletion, readProviderValue, type ProviderValue, type Read } from './provider-value.ts';
import type { Problem } from './reading.ts';
import { shownUpgradeIndexes } from './upgrade-order.ts';
import { changeFor, classFor, clusterNameOf, fixedFieldsChanged, MADE_FOR, machineFor } from './wanted.ts';

/** What the front end is made of. */
export interface MirantisDeps {
  readonly clusterMachines: Lister<ClusterMachine>;
  /** With the index CLASS_INDEX. */
  readonly machines: Lister<Machine>;
  readonly classes: Lister<MachineClass>;
  /** Undefined without a target cluster. */
  readonly nodes: Lister<Node> | undefined;
  /** Live reads: settings of Clusters, and whether a Machine is gone. */
  readonly reader: Reader;
  readonly writer: Writer;
  readonly targets: Pick<Targets, 'of'>;
  readonly log: Logger;
}

const PROVIDER = 'openstack';
/** What is not watched is looked at again so often, when something is wrong or missing. */
const LOOK_AGAIN_MS = 5_000;

/** How far a pass has come: the object as it was written last, and what keeps it from going on. */
interface Synced {
  readonly machine: ClusterMachine;
  readonly problems: readonly Problem[];
  /** Undefined: something that is watched will wake the pass. */
  readonly again?: StepResult;
}

/**
 * Makes of each Machine of Mirantis Container Cloud a Machine of ours, and tells what becomes of it.
 *
 *   cluster.k8s.io Machine ─ finalizer ─▶ MachineClass (shared) ─▶ our Machine, of the same name ─▶ UID on the first ─▶ its status
 *        ▲                                                                                        │
 *        └─────────────────── goes when ours is gone ◀────────────────────────────────────────────┘
 *
 * Each pass begins anew from what is there, so that any write may be the last one. Only one pass runs at a time: between making a class
 * and the Machine that uses it no other one removes it as unused.
 */
export class MirantisController {
  readonly #deps: MirantisDeps;

  constructor(deps: MirantisDeps) {
    this.#deps = deps;
  }

  /** One pass over one Machine. What it throws is retried with back-off. */
  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const machine = this.#deps.clusterMachines.get(key);
    if (machine === undefined) return stop;
    const ours = this.#oursOf(machine);
    if (isBeingDeleted(machine)) return isHeld(machine) ? await this.#finish(machine, ours, signal) : stop;
    if (machine.metadata.labels?.[PROVIDER_LABEL] !== PROVIDER) return stop;
    if (ours === undefined && hasHadItsMachine(machine)) return await this.#follow(machine, signal);

    const { value, problems } = readProviderValue(machine);
    const synced = value === undefined ? { machine, problems } : await this.#sync(machine, ours, value, signal);
    await this.#tell(synced, signal);
    await this.#removeUnusedClasses(machine, signal);
    return synced.again ?? stop;
  }

  /** Our Machine of it, if there is one. */
  #oursOf(machine: ClusterMachine): Machine | undefined {
    const named = this.#deps.machines.get(keyOf(machine));
    return named !== undefined && isMadeFor(machine, named) ? named : undefined;
  }

  /** Makes our Machine, or has it follow. What the API server refuses is a problem of the object. */
  async #sync(
    machine: ClusterMachine,
    ours: Machine | undefined,
    value: ProviderValue,
    signal: AbortSignal,
  ): Promise<Synced> {
    try {
      return ours === undefined
        ? await this.#make(machine, value, signal)
        : await this.#update(machine, ours, value, signal);
    } catch (err) {
      if (!ApiError.is(err, 'Forbidden', 'Invalid', 'BadRequest')) throw err;
      return { machine, problems: [`refused by the API server: ${err.message}`], again: lookAgain('what it refused') };
    }
  }

  async #make(machine: ClusterMachine, value: ProviderValue, signal: AbortSignal): Promise<Synced> {
    const { machines: known, writer, log } = this.#deps;
    if (known.get(keyOf(machine)) !== undefined) {
      const problem = `metadata.name: a Machine of machine.sapcloud.io has this name and belongs to somebody else; choose another name`;
      return { machine, problems: [problem], again: lookAgain('the other Machine to go') };
    }
    const wanted = await this.#classOf(machine, value, signal);
    if (wanted.value === undefined) return { machine, problems: wanted.problems, again: lookAgain('settings') };
    if (!isHeld(machine)) {
      const finalizers = [...(machine.metadata.finalizers ?? []), FRONT_END_FINALIZER];
      const patch = mergePatchIfUnchanged(machine, { metadata: { finalizers } });
      const held = await writer.patch('change', clusterMachines, refOf(machine), patch, { signal });
      return { machine: held, problems: [], again: requeue(0, 'the finalizer to be seen') };
    }
    const problems = await this.#provideClass(wanted.value, signal);
    if (problems.length > 0) return { machine, problems, again: lookAgain('the class to go') };
    try {
      const made = await writer.create('create', machines, machineFor(machine, value, wanted.value.metadata.name), {
        signal,
      });
      log.info({ machine: keyOf(made) }, 'created machine for a machine of cluster.k8s.io');
      return { machine: await this.#note(machine, made, signal), problems: [] };
    } catch (err) {
      if (!isAlreadyExists(err)) throw err;
      return { machine, problems: [], again: lookAgain('the Machine of its name to be seen') };
    }
  }

  async #update(machine: ClusterMachine, ours: Machine, value: ProviderValue, signal: AbortSignal): Promise<Synced> {
    const noted = await this.#note(machine, ours, signal);
    const hasServer = providerIDOf(ours) !== '' || isBeingDeleted(ours);
    const fit = hasServer ? this.#fixed(ours, value) : await this.#follows(machine, value, signal);
    const className = fit.className ?? classNameOf(ours);
    const change = changeFor(ours, value, className);
    if (change !== undefined) {
      const patch = mergePatch(ours, change);
      await this.#deps.writer.patch('change', machines, refOf(ours), patch, { signal });
    }
    const isWaiting = !hasServer && fit.problems.length > 0;
    return { machine: noted, problems: fit.problems, ...(isWaiting && { again: lookAgain('settings') }) };
  }

  /** Of a machine that has a server no class can change; what is asked for in vain is named. */
  #fixed(ours: Machine, { server }: ProviderValue): ClassFit {
    const machineClass = this.#deps.classes.get(keyBeside(ours, classNameOf(ours)));
    const changed = machineClass === undefined ? [] : fixedFieldsChanged(server, machineClass);
    if (changed.length === 0) return { problems: [] };
    const fields = changed.map((field) => `spec.providerSpec.value.${field}`).join(', ');
    return { problems: [`${fields}: cannot change once there is a server; change it back, or make another Machine`] };
  }

  /** A machine without a server yet follows what was corrected. */
  async #follows(machine: ClusterMachine, value: ProviderValue, signal: AbortSignal): Promise<ClassFit> {
    const wanted = await this.#classOf(machine, value, signal);
    if (wanted.value === undefined) return { problems: wanted.problems };
    const problems = await this.#provideClass(wanted.value, signal);
    return problems.length > 0 ? { problems } : { problems, className: wanted.value.metadata.name };
  }

  async #classOf(machine: ClusterMachine, value: ProviderValue, signal: AbortSignal): Promise<Read<New<MachineClass>>> {
    const settings = await this.#settingsOf(machine, signal);
    if (settings.value === undefined) return settings;
    const region = machine.metadata.labels?.[REGION_LABEL];
    const { labelledRegion } = settings.value;
    if (region !== undefined && labelledRegion !== undefined && region !== labelledRegion) {
      return { problems: [`metadata.labels.${REGION_LABEL}: must be ${labelledRegion}, the region of the Cluster`] };
    }
    return { value: classFor(machine, value.server, settings.value) };
  }

  /** Settings of the Cluster, from the ConfigMap of its name; the Secret of its name has to be there. */
  async #settingsOf(machine: ClusterMachine, signal: AbortSignal): Promise<Read<ClusterSettings>> {
    const { reader } = this.#deps;
    const { namespace = '' } = machine.metadata;
    const name = clusterNameOf(machine);
    if (name === '')
      return { problems: ['metadata.labels.cluster.sigs.k8s.io/cluster-name: must be the name of the Cluster'] };
    const ref = { namespace, name };
    const [settings, secret] = await Promise.all([
      found(() => reader.get(configMaps, ref, { signal })),
      found(() => reader.get(secrets, ref, { signal, metadataOnly: true })),
    ]);
    const missing = [
      ...(settings === undefined
        ? [`ConfigMap ${name}: missing, make it with ${Object.keys(SETTINGS).join(', ')}`]
        : []),
      ...(secret === undefined
        ? [`Secret ${name}: missing, make it with the credentials of the cloud and userData`]
        : []),
    ];
    const read = settings && readClusterSettings(settings);
    if (read?.value !== undefined && missing.length === 0) return read;
    return { problems: [...missing, ...(read?.problems ?? [])] };
  }

  /** Makes the class, unless it is there; the problems say why it cannot be used. */
  async #provideClass(wanted: New<MachineClass>, signal: AbortSignal): Promise<readonly Problem[]> {
    const { name, namespace = '' } = wanted.metadata;
    const known = this.#deps.classes.get(`${namespace}/${name}`);
    if (known !== undefined) return isBeingDeleted(known) ? [`MachineClass ${name}: is being deleted, wait`] : [];
    try {
      await this.#deps.writer.create('create', machineClasses, wanted, { signal });
      return [];
    } catch (err) {
      if (isAlreadyExists(err)) return [];
      throw err;
    }
  }

  /** Remembers which Machine was made: when that one is gone, this one goes too. Shows its floating IP. */
  async #note(machine: ClusterMachine, ours: Machine, signal: AbortSignal): Promise<ClusterMachine> {
    const { annotations = {} } = machine.metadata;
    const floating = addressOf({ ours, node: this.#nodeOf(ours) }, 'ExternalIP');
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
    if (!(await this.#isGone(machine, signal))) return lookAgain('the cache to show its Machine');
    const { uid, resourceVersion } = machine.metadata;
    const preconditions = { uid, resourceVersion };
    await this.#deps.writer.delete('destroy', clusterMachines, refOf(machine), preconditions, { signal });
    return waitFor('its deletion');
  }

  /** DELETE of it is DELETE of ours; the finalizer goes when that is gone. */
  async #finish(machine: ClusterMachine, ours: Machine | undefined, signal: AbortSignal): Promise<StepResult> {
    const { writer, targets } = this.#deps;
    if (ours === undefined) {
      if (!(await this.#isGone(machine, signal))) return lookAgain('the cache to show its Machine');
      await this.#removeUnusedClasses(machine, signal);
      const finalizers = (machine.metadata.finalizers ?? []).filter((one) => one !== FRONT_END_FINALIZER);
      const patch = mergePatchIfUnchanged(machine, { metadata: { finalizers } });
      await writer.patch('change', clusterMachines, refOf(machine), patch, { signal });
      return stop;
    }
    const { value, problems = [] } = readProviderValue(machine);
    // Before the deletion: it goes by the policy that is wanted now.
    const change = value === undefined ? undefined : changeFor(ours, value, classNameOf(ours));
    const current =
      change === undefined
        ? ours
        : await writer.patch('change', machines, refOf(ours), mergePatch(ours, change), { signal });
    if (!isBeingDeleted(current)) {
      const clusters = concernedTargets(targets, [ours]);
      await writer.delete('destroy', machines, refOf(ours), { uid: ours.metadata.uid }, { signal, clusters });
    }
    await this.#tell({ machine, problems }, signal);
    return waitFor('its Machine to be gone');
  }

  /** Whether the API server itself shows no Machine of it. */
  async #isGone(machine: ClusterMachine, signal: AbortSignal): Promise<boolean> {
    const named = await found(() => this.#deps.reader.get(machines, refOf(machine), { signal }));
    return named === undefined || !isMadeFor(machine, named);
  }

  /** Deletes the classes that were made here and that no Machine uses any more. */
  async #removeUnusedClasses({ metadata: { namespace } }: ClusterMachine, signal: AbortSignal): Promise<void> {
    const { classes, machines: known, writer } = this.#deps;
    const unused = classes
      .list()
      .filter(({ metadata }) => metadata.labels?.[MADE_FOR_LABEL] === MADE_FOR && metadata.namespace === namespace)
      .filter((one) => !isBeingDeleted(one) && known.byIndex(CLASS_INDEX, keyOf(one)).length === 0);
    for (const one of unused) {
      const { uid, resourceVersion } = one.metadata;
      await writer
        .delete('destroy', machineClasses, refOf(one), { uid, resourceVersion }, { signal })
        .catch(ignoreGone);
    }
  }

  async #tell({ machine, problems }: Synced, signal: AbortSignal): Promise<void> {
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
    const before = machine.status?.providerStatus ?? {};
    const after = providerStatusOf(known);
    const own = Object.fromEntries(Object.entries(before).filter(([member]) => member in after));
    const change = replacing<object>(own, definedOf(after));
    if (change === null || Object.keys(change).length === 0) return;
    const patch = statusPatch(machine, { providerStatus: change });
    await this.#deps.writer.patch('change', clusterMachines, refOf(machine), patch, { signal });
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

function isHeld({ metadata }: ClusterMachine): boolean {
  return metadata.finalizers?.includes(FRONT_END_FINALIZER) === true;
}

function isMadeFor(machine: ClusterMachine, ours: Machine): boolean {
  return controllerOf(ours)?.uid === machine.metadata.uid;
}

/** Whether there has been a Machine for it, or must not be one any more. */
function hasHadItsMachine(machine: ClusterMachine): boolean {
  return (
    machine.metadata.annotations?.[MADE_MACHINE_ANNOTATION]?.startsWith(noteOf(machine)) === true ||
    asksDeletion(machine)
  );
}

/** What the note begins with: one that was copied from another object, or restored from a backup, is not about this one. */
function noteOf({ metadata: { uid } }: ClusterMachine): string {
  return `${uid}/`;
}

function lookAgain(what: string): StepResult {
  return requeue(LOOK_AGAIN_MS, what);
}

async function found<T>(get: () => Promise<T>): Promise<T | undefined> {
  try {
    return await get();
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}

function ignoreGone(err: unknown): undefined {
  if (!isNotFound(err)) throw err;
}

function definedOf(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
