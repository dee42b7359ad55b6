import { accountOf } from '../../../driver/account.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { DriverError } from '../../../driver/error.ts';
import { TurnAbandonedError } from '../../../driver/turn-abandoned.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import type { Collaborators } from './collaborators.ts';
import { deletedOrphan, failedToDeleteOrphan, foundOrphan, keptTwin } from './events.ts';
import { isItsVM, type IsListed } from '../../vms/ownership.ts';
import { describeProof, type Proof, proofFields } from './evidence.ts';
import type { ClassAccess } from './survey.ts';

interface Deps extends Pick<Collaborators, 'activities' | 'recorder' | 'metrics' | 'clock' | 'log' | 'isDryRun'> {
  /** Whether any Machine has the VM by now, as the caches show it. */
  readonly isOwned: (vm: ListedMachine, isListed: IsListed) => boolean;
  /** The Machine that has the VM's UID or name, as the caches show it. */
  readonly namesakeOf: (vm: ListedMachine) => Machine | undefined;
  /** A VM is gone: what is left of it can go too. */
  readonly collected: (vm: ListedMachine) => void;
  /** A VM that counted as gone is listed still, and cannot be deleted. */
  readonly stays: (vm: ListedMachine) => void;
}

export interface Collection {
  readonly vm: ListedMachine;
  readonly access: ClassAccess;
  /** What the lists of the look that proved it show. */
  readonly isListed: IsListed;
  /** The way to the VM of that Machine. */
  readonly accessOf: (namesake: Machine) => ClassAccess;
  readonly proof: Proof;
}

/** So often a driver may not find a VM that is deleted, but listed still, before it is told that it was not: lists lag. */
const PATIENCE = 3;
/** So long one may be listed that the driver deletes again and again, before it is told that it was not: some providers take minutes. */
const SLOW_MS = 10 * MINUTE_MS;

/** A VM that counts as deleted. */
interface Ended {
  /** The class whose list showed it. */
  readonly group: string;
  /** When that, or that it is listed all the same, was told; monotonic. */
  readonly toldMs: number;
  /** How often its driver, which lists it still, has not found it since. */
  readonly unfound: number;
}

/** Deletes VMs that are proved to be nobody's, each as an activity, and tells of every one with its proof. */
export class Collector {
  readonly #deps: Deps;
  readonly #key: string;
  readonly #running = new Map<string, Collection>();
  /** VMs that were told of in a dry run. */
  readonly #reported = new Set<string>();
  /** VMs that count as deleted, and are listed still. */
  readonly #ended = new Map<string, Ended>();

  /** `key` is enqueued when a deletion has ended. */
  constructor(key: string, deps: Deps) {
    this.#key = key;
    this.#deps = deps;
  }

  /** Begins the deletion of a VM, unless it is under way. Without ID a driver would find the VM of the Machine that has the name. */
  collect(collection: Collection): void {
    const { vm, access, proof } = collection;
    if (vm.providerID === '') return;
    if (this.#deps.isDryRun) return this.#report(vm, access, proof);
    if (this.#running.has(vm.providerID)) return;
    this.#running.set(vm.providerID, collection);
    const account = accountOf(access.driver.provider, access.machineClass);
    const owner = { uid: vm.providerID, key: this.#key, account };
    this.#deps.activities.startOrGet(owner, 'delete', async (signal) => {
      const { driver, machineClass, secretData } = access;
      await driver.turn(machineClass, signal);
      await this.#confirm(collection, signal);
      await driver.delete({ machine: stubOf(vm, machineClass), machineClass, secretData }, signal);
    });
  }

  /** Throws Canceled when the VM is not to be deleted after all: what a list says twice is one source. */
  async #confirm({ vm, access, isListed, accessOf }: Collection, signal: AbortSignal): Promise<void> {
    const { isOwned, namesakeOf, recorder, log } = this.#deps;
    const namesake = namesakeOf(vm);
    const verdict = namesake === undefined ? 'twin' : await judgeTwin(vm, namesake, accessOf(namesake), signal);
    if (verdict !== 'twin') {
      recorder.event(keptTwin(access.machineClass, vm, verdict));
      log.warn(
        { ...fieldsOf(vm, access.machineClass), verdict },
        'kept a VM that may belong to a machine of its name or UID',
      );
      throw leftAlone('GetMachineStatus does not confirm that it is a second VM of its Machine');
    }
    if (isOwned(vm, isListed)) throw leftAlone('a Machine with this VM exists now');
  }

  /** Takes note of deletions that have ended; returns how many are still under way. */
  settle(): number {
    for (const [providerID, collection] of this.#running) {
      const activity = this.#deps.activities.get(providerID, 'delete');
      if (activity?.state === 'running') continue;
      this.#running.delete(providerID);
      this.#deps.activities.forget(providerID, 'delete');
      if (activity?.state !== 'failed') this.#succeeded(collection);
      else if (DriverError.hasCode(activity.error, 'NotFound')) this.#notFound(collection, activity.error);
      else this.#failed(collection, activity.error);
    }
    return this.#running.size;
  }

  /** Forgets VMs that are not `listed` any more, except those of classes at which nobody could look: IDs that are made of names come again. */
  keep(listed: ReadonlySet<string>, unseen: ReadonlySet<string>): void {
    for (const [id, { group }] of this.#ended) if (!listed.has(id) && !unseen.has(group)) this.#ended.delete(id);
  }

  /** It is gone. If it is listed for long, it is not. */
  #succeeded(collection: Collection): void {
    const { vm } = collection;
    const ended = this.#ended.get(vm.providerID);
    if (ended === undefined) return this.#deleted(collection);
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - ended.toldMs < SLOW_MS) return;
    this.#ended.set(vm.providerID, { ...ended, toldMs: nowMs });
    this.#stays(collection, 'although DeleteMachine returned success 10 minutes ago');
  }

  /** The same of one that was gone already. */
  #notFound(collection: Collection, { message }: Error): void {
    const { vm } = collection;
    const ended = this.#ended.get(vm.providerID);
    if (ended === undefined) return this.#deleted(collection);
    const unfound = ended.unfound + 1;
    this.#ended.set(vm.providerID, { ...ended, unfound });
    if (unfound >= PATIENCE) this.#stays(collection, `but DeleteMachine does not find it: ${message}`);
  }

  #stays(collection: Collection, why: string): void {
    this.#deps.stays(collection.vm);
    this.#failed(collection, new Error(`ListMachines returns it, ${why}`));
  }

  #deleted({ vm, access: { key: group, machineClass }, proof }: Collection): void {
    const { recorder, metrics, clock, log, collected } = this.#deps;
    this.#ended.set(vm.providerID, { group, toldMs: clock.monotonicMs(), unfound: 0 });
    metrics.orphanVMs.inc({ result: 'deleted' });
    recorder.event(deletedOrphan(machineClass, vm, describeProof(proof)));
    log.info({ ...fieldsOf(vm, machineClass), ...proofFields(proof) }, 'deleted an orphan VM');
    collected(vm);
  }

  #failed({ vm, access: { machineClass } }: Collection, err: unknown): void {
    const { recorder, metrics, log } = this.#deps;
    const wasNotSent = err instanceof GateClosedError || err instanceof TurnAbandonedError;
    if (wasNotSent || DriverError.hasCode(err, 'Canceled'))
      return log.debug({ ...fieldsOf(vm, machineClass), err }, 'paused the deletion of an orphan VM');
    metrics.orphanVMs.inc({ result: 'failed' });
    recorder.event(failedToDeleteOrphan(machineClass, vm, err));
    log.warn({ ...fieldsOf(vm, machineClass), err }, 'could not delete an orphan VM');
  }

  #report(vm: ListedMachine, { machineClass }: ClassAccess, proof: Proof): void {
    if (this.#reported.has(vm.providerID)) return;
    this.#reported.add(vm.providerID);
    const { recorder, metrics, log } = this.#deps;
    metrics.orphanVMs.inc({ result: 'dry-run' });
    recorder.event(foundOrphan(machineClass, vm, describeProof(proof)));
    log.warn({ ...fieldsOf(vm, machineClass), ...proofFields(proof) }, 'found an orphan VM (dry run)');
  }
}

function leftAlone(why: string): DriverError {
  return new DriverError('Canceled', why, { unanswered: true });
}

/**
 * Exactly that VM is meant: its provider id counts, and no UID is told, by which a driver would also find the VM of the Machine that
 * this one is a twin of.
 */
function stubOf(
  { machineName, providerID }: ListedMachine,
  { metadata }: MachineClass,
): { metadata: { name: string; namespace: string }; spec: { providerID: string } } {
  return { metadata: { name: machineName, namespace: metadata.namespace ?? '' }, spec: { providerID } };
}

function fieldsOf(
  { providerID, machineName }: ListedMachine,
  { metadata }: MachineClass,
): { providerID: string; machine: string; class: string } {
  return { providerID, machine: `${metadata.namespace ?? ''}/${machineName}`, class: metadata.name };
}

/** Whether a VM that has the name or the UID of a Machine is a second one; `unknown`: the provider does not say. */
type TwinVerdict = 'twin' | 'of-machine' | 'unknown';

/**
 * Asks for the VM of `namesake`, as the second source beside the list, which shows the VM that it knows and `vm`:
 *
 * | GetMachineStatus says                         | verdict    |
 * |-----------------------------------------------|------------|
 * | another VM                                    | twin       |
 * | several (OutOfRange)                          | twin       |
 * | that it does not exist as a method            | twin       |
 * | this VM, initialized or not, in any form      | of-machine |
 * | anything else, also that there is none        | unknown    |
 */
export async function judgeTwin(
  vm: ListedMachine,
  namesake: Machine,
  { driver, machineClass, secretData }: Pick<ClassAccess, 'driver' | 'machineClass' | 'secretData'>,
  signal: AbortSignal,
): Promise<TwinVerdict> {
  try {
    const { providerID } = await driver.getStatus({ machine: namesake, machineClass, secretData }, signal);
    return verdictOf(vm, namesake, providerID);
  } catch (err) {
    signal.throwIfAborted();
    if (DriverError.hasCode(err, 'OutOfRange', 'Unimplemented')) return 'twin';
    return DriverError.hasCode(err, 'Uninitialized') ? verdictOf(vm, namesake, err.result?.providerID) : 'unknown';
  }
}

function verdictOf(vm: ListedMachine, namesake: Machine, providerID: string | undefined): TwinVerdict {
  if (providerID === undefined || providerID === '') return 'unknown';
  return isItsVM(vm, namesake, providerID) ? 'of-machine' : 'twin';
}
