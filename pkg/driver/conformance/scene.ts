import { Status } from 'nice-grpc';

import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Capabilities } from '../driver.ts';
import { messageOf } from '../errno.ts';
import type {
  CreateMachineResponse,
  DeleteMachineResponse,
  Failure,
  GetMachineStatusResponse,
  ListedMachine,
  VirtualMachine,
} from '../grpc/gen/machine/driver/v1/driver.ts';
import { NoAnswer, type Conversation, type Sent, type Subject } from './conversation.ts';
import type { VerifyOptions } from './options.ts';
import { answerText, codeName, UnexpectedAnswer, Violation } from './violation.ts';

/** Pause between two attempts of what a provider needs time for. */
const PAUSE_MS = 250;
/** Failures that a manager answers with another attempt, soon. */
const PASSING = ['Canceled', 'Unknown', 'DeadlineExceeded', 'Aborted', 'Unavailable'];
/** What is said of a machine whose provider id is that of another one's VM. */
const NOT_ITS_OWN = ['NotFound', 'OutOfRange'];
const REFUSALS = ['InvalidArgument', 'PermissionDenied', 'Unauthenticated'];
const DEFAULT_LAG_MS = 10_000;
const NOT_FOUND: Failure = {
  code: 5,
  message: '',
  lastKnownState: '',
  retryAfter: undefined,
  terminal: false,
  fencingToken: 0n,
};
/** A list that does not end is none. */
const MAX_PAGES = 1_000;

export interface SceneDeps {
  readonly options: VerifyOptions;
  readonly conversation: Conversation;
  readonly capabilities: Capabilities;
  /** Unique, as prefix of the cluster and of the names of machines: nothing of it exists before. */
  readonly prefix: string;
  readonly signal: AbortSignal;
}

/**
 * One rule's part of the world: a cluster that no driver has heard of, and machines whose names nobody has. Remembers for which of them
 * a VM was asked for, so that none is left.
 */
export class Scene {
  readonly options: VerifyOptions;
  readonly capabilities: Capabilities;
  readonly talk: Conversation;
  readonly cluster: string;
  readonly #prefix: string;
  readonly #clock: Clock;
  #signal: AbortSignal;
  readonly #asked = new Map<string, Subject>();
  /** Of those, for which something else than a refusal came of a creation. */
  readonly #mayHaveVM = new Set<string>();
  /** Provider ids that the driver has told of their VMs. */
  readonly #told = new Map<string, Set<string>>();
  /** Names of machines and provider ids for which a deletion has succeeded, is under way, or was not answered. */
  readonly #deleted = new Set<string>();

  constructor({ options, conversation, capabilities, prefix, signal }: SceneDeps) {
    this.options = options;
    this.capabilities = capabilities;
    this.talk = conversation;
    this.cluster = prefix;
    this.#prefix = prefix;
    this.#clock = options.clock;
    this.#signal = signal;
  }

  /** Ends with the rule's time, or with the run. */
  get signal(): AbortSignal {
    return this.#signal;
  }

  /** The machine of that letter; the same each time, but for what is changed. */
  machine(letter: string, change: Partial<Subject> = {}): Subject {
    const { machineClass } = this.options;
    const { namespace = 'default' } = machineClass.metadata;
    const name = `${this.#prefix}-${letter}`;
    return { cluster: this.cluster, namespace, name, uid: `uid-${name}`, providerID: '', machineClass, ...change };
  }

  /** The class under another name, or in another namespace. */
  otherClass(change: Partial<Pick<MachineClass['metadata'], 'name' | 'namespace'>>): MachineClass {
    const { machineClass } = this.options;
    return { ...machineClass, metadata: { ...machineClass.metadata, ...change } };
  }

  async create(subject: Subject, sent: Sent = {}): Promise<CreateMachineResponse> {
    const key = this.#ask(subject);
    let isRefused = false;
    try {
      const answer = await this.talk.create(subject, this.#under(sent), this.capabilities.idempotentCreate);
      this.#noteID(key, answer.vm);
      isRefused = answer.vm === undefined && isRefusal(answer.failure);
      return answer;
    } finally {
      if (!isRefused) this.#mayHaveVM.add(key);
    }
  }

  async status(subject: Subject, sent: Sent = {}): Promise<GetMachineStatusResponse> {
    const answer = await this.talk.status(subject, this.#under(sent));
    if (this.#asked.has(keyOf(subject))) this.#noteID(keyOf(subject), answer.vm);
    return answer;
  }

  async delete(subject: Subject, sent: Sent = {}): Promise<DeleteMachineResponse> {
    let isAccepted = true;
    try {
      const answer = await this.talk.delete(subject, this.#under(sent));
      // Aborted says that the deletion is under way: what is left may go before the next call, which is then answered with NotFound.
      isAccepted = answer.failure === undefined || codeName(answer.failure) === 'Aborted';
      return answer;
    } finally {
      if (isAccepted) this.#deleted.add(subject.name).add(subject.providerID);
    }
  }

  #noteID(key: string, vm: VirtualMachine | undefined): void {
    if (vm === undefined || vm.providerId === '') return;
    this.#told.set(key, (this.#told.get(key) ?? new Set()).add(vm.providerId));
  }

  /** From now on a VM of this machine may exist. */
  note(subject: Subject): void {
    this.#mayHaveVM.add(this.#ask(subject));
  }

  /** What is tried for the machine is removed. Returns what it is remembered by. */
  #ask(subject: Subject): string {
    const key = keyOf(subject);
    this.#asked.set(key, subject);
    return key;
  }

  /** A VM that is asked for, repeated while the provider is not able to, and completed where the driver wants that. */
  async made(subject: Subject, sent: Sent = {}): Promise<VirtualMachine> {
    const { failure, vm } = await this.#patiently(() => this.create(subject, sent), isUnderWay);
    if (failure !== undefined && codeName(failure) === 'Uninitialized')
      return await this.#initialized(subject, sent, vm);
    if (failure !== undefined) throw new UnexpectedAnswer('CreateMachine', failure, 'success with the VM');
    return existing('CreateMachine', vm);
  }

  /** The VM of a machine that has one. */
  async found(subject: Subject, sent: Sent = {}): Promise<VirtualMachine> {
    const { failure, vm } = await this.#patiently(() => this.status(subject, sent));
    if (failure !== undefined && codeName(failure) !== 'Uninitialized') {
      throw new UnexpectedAnswer('GetMachineStatus of a machine that has a VM', failure, 'success with the VM');
    }
    return existing('GetMachineStatus', vm);
  }

  /** There is no VM. Said as a gRPC status it counts too: one rule is about that. */
  async requireNone(subject: Subject, what: string): Promise<void> {
    const { failure, vm } = await this.#patiently(() => inBand(this.status(subject)));
    if (failure !== undefined && codeName(failure) === 'NotFound') return;
    const call = `GetMachineStatus of ${what}`;
    if (vm === undefined) throw new UnexpectedAnswer(call, failure, 'NotFound');
    throw new Violation(`${call} returned ${answerText(failure)} with VM ${vm.providerId}`, 'NotFound');
  }

  /** The VM of the id that the machine has is another's, and not shown for it: NotFound, or OutOfRange. */
  async requireNotShown(subject: Subject, what: string): Promise<void> {
    const { failure, vm } = await this.#patiently(() => inBand(this.status(subject)));
    if (failure !== undefined && NOT_ITS_OWN.includes(codeName(failure))) return;
    const shown = vm === undefined ? '' : `, and VM ${vm.providerId}`;
    throw new Violation(
      `GetMachineStatus of ${what} returned ${answerText(failure)}${shown}`,
      NOT_ITS_OWN.join(' or '),
    );
  }

  /** Asks for the deletion of a machine that has no VM, whatever id it has. */
  async deletedNothing(subject: Subject): Promise<void> {
    const { failure } = await this.#patiently(() => inBand(this.delete(subject)));
    if (failure === undefined || NOT_ITS_OWN.includes(codeName(failure))) return;
    throw new UnexpectedAnswer(
      "DeleteMachine of a machine with the ID of another machine's VM",
      failure,
      `${NOT_ITS_OWN.join(' or ')}, or success`,
    );
  }

  /** Has the VM of a machine made by another tool, without tags. Returns its provider id. */
  async untagged(subject: Subject): Promise<string> {
    const { name, namespace, machineClass } = subject;
    this.note(subject);
    await this.options.makeUntagged?.({ name, namespace, className: machineClass.metadata.name }, this.#signal);
    return (await this.found(subject)).providerId;
  }

  /** Exactly this VM belongs to the machine, as far as can be asked. */
  async requireOnly(subject: Subject, providerID: string): Promise<void> {
    const { providerId } = await this.found(subject);
    if (providerId !== providerID)
      throw new Violation(`the machine has two VMs: ${providerID} and ${providerId}`, 'only the first VM');
    if (!this.capabilities.methods.has('ListMachines')) return;
    await this.#soon(async () => {
      const ids = (await this.list(subject)).filter((vm) => vm.machineName === subject.name).map((vm) => vm.providerId);
      if (ids.length > 1) throw new Violation(`the machine has ${ids.length} VMs: ${ids.join(', ')}`, 'one');
      if (ids[0] !== providerID)
        throw new Violation(`ListMachines returns ${ids[0] ?? 'no VM'} for the machine`, `VM ${providerID}`);
    });
  }

  /** Several calls at the same time. Settles when the last of them has ended, so that none of them runs on. */
  async atOnce<T>(calls: readonly (() => Promise<T>)[]): Promise<readonly T[]> {
    const running = calls.map((call) => call());
    await Promise.allSettled(running);
    return await Promise.all(running);
  }

  /** Asks for the deletion until nothing is left. */
  async deleted(subject: Subject, sent: Sent = {}): Promise<void> {
    const { failure } = await this.#patiently(() => inBand(this.delete(subject, sent)));
    if (failure === undefined || codeName(failure) === 'NotFound') return;
    throw new UnexpectedAnswer('DeleteMachine', failure, 'success or NotFound');
  }

  /** Nothing is left of a machine, neither by its name nor in a list. */
  async requireGone(subject: Subject, what = 'a machine whose VM was deleted'): Promise<void> {
    await this.requireNone(subject, what);
    if (!this.capabilities.methods.has('ListMachines')) return;
    await this.#soon(async () => {
      const left = (await this.list(subject)).filter((vm) => vm.machineName === subject.name);
      if (left.length > 0)
        throw new Violation(
          `ListMachines still returns ${left.map((vm) => vm.providerId).join(', ')}`,
          'no VM of the machine',
        );
    });
  }

  /** All VMs that are listed for the class of a machine, in its cluster. */
  async list(subject: Pick<Subject, 'cluster' | 'machineClass'>, pageSize = 0): Promise<readonly ListedMachine[]> {
    const machines: ListedMachine[] = [];
    let pageToken = '';
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const answer = await this.#patiently(() => this.talk.page(subject, this.#under({}), { pageSize, pageToken }));
      if (answer.failure !== undefined) throw new UnexpectedAnswer('ListMachines', answer.failure, 'a page of VMs');
      if (pageSize > 0 && answer.machines.length > pageSize) {
        throw new Violation(`a page has ${answer.machines.length} VMs`, `at most ${pageSize}, as asked`);
      }
      machines.push(...answer.machines);
      pageToken = answer.nextPageToken;
      if (pageToken === '') return machines;
    }
    throw new Violation(`ListMachines did not end after ${MAX_PAGES} pages`, 'a last page without next_page_token');
  }

  /** Repeats what may need a moment to be seen; its last violation counts. */
  async #soon(check: () => Promise<void>): Promise<void> {
    const { lagMs = DEFAULT_LAG_MS } = this.options;
    const untilMs = this.#clock.monotonicMs() + lagMs;
    for (;;) {
      try {
        return await check();
      } catch (err) {
        if (!(err instanceof Violation) || this.#clock.monotonicMs() >= untilMs) throw err;
      }
      await this.#pause();
    }
  }

  /** Repeats a call while its failure is one that passes; ends with the rule. */
  async #patiently<R extends { readonly failure: Failure | undefined }>(
    send: () => Promise<R>,
    goesOn: (answer: R) => boolean = () => false,
  ): Promise<R> {
    for (;;) {
      const answer = await send();
      if (answer.failure === undefined) return answer;
      if (!PASSING.includes(codeName(answer.failure)) && !goesOn(answer)) return answer;
      try {
        await this.#pause();
      } catch {
        throw new Violation(
          `the call still returned ${answerText(answer.failure)} when the rule timed out (--rule-timeout)`,
          'a final answer',
        );
      }
    }
  }

  async #initialized(subject: Subject, sent: Sent, vm: VirtualMachine | undefined): Promise<VirtualMachine> {
    const made = existing('CreateMachine', vm);
    if (!this.capabilities.methods.has('InitializeMachine')) {
      throw new Violation(
        'CreateMachine returned Uninitialized, but GetCapabilities does not name InitializeMachine',
        'InitializeMachine in GetCapabilities, or success',
      );
    }
    for (;;) {
      const { failure } = await this.#patiently(() =>
        this.talk.initialize({ ...subject, providerID: made.providerId }, this.#under(sent)),
      );
      if (failure === undefined) return made;
      if (codeName(failure) !== 'Uninitialized') {
        throw new UnexpectedAnswer('InitializeMachine', failure, 'success');
      }
      await this.#pause();
    }
  }

  /** Removes whatever a VM was asked for. Returns what may be left, and how it is found. */
  async cleanUp(signal: AbortSignal): Promise<readonly string[]> {
    this.#signal = signal;
    const left: string[] = [];
    for (const [key, asked] of this.#asked) {
      const subject = this.#withoutMistake(asked);
      const ids = [...(this.#told.get(key) ?? [])];
      try {
        await this.#remove(subject);
        await this.#removeDoubles(subject);
        for (const providerID of ids) await this.#removeByID({ ...subject, providerID });
        // A driver that is being tried is not believed that it has deleted anything.
        await this.requireGone(subject);
        this.#requireDeleted(subject, ids);
      } catch (err) {
        // Who lets nobody in has made nothing, and does not let us look either.
        if (!this.#mayHaveVM.has(key) && err instanceof UnexpectedAnswer && isRefusal(err.failure)) continue;
        left.push(`${describeLeft(subject, ids)}: ${messageOf(err)}`);
      }
    }
    this.#asked.clear();
    return left;
  }

  /** Some drivers find by its id what they do not find by the name of its machine. */
  async #removeByID(subject: Subject): Promise<void> {
    const { failure } = await this.#patiently(() => inBand(this.status(subject)));
    if (failure !== undefined && NOT_ITS_OWN.includes(codeName(failure))) return;
    await this.#remove(subject);
    await this.#remove({ ...subject, uid: '' });
    await this.requireNone(subject, 'a VM that was deleted by its ID');
  }

  /** A VM that the driver has told of does not go by itself. */
  #requireDeleted({ name }: Subject, ids: readonly string[]): void {
    if (this.#deleted.has(name) || ids.every((id) => this.#deleted.has(id))) return;
    throw new Violation(
      'the driver returns NotFound for a VM that it has reported, and each DeleteMachine call returned that',
      'a DeleteMachine call that returns success, or Aborted while the VM is being deleted',
    );
  }

  /** Of a class that is wrong a driver need not list anything, nor delete what it has refused to make. */
  #withoutMistake(subject: Subject): Subject {
    const { providerSpec } = this.options.machineClass;
    return { ...subject, machineClass: { ...subject.machineClass, providerSpec } };
  }

  /** As a manager without leader election, or else above the highest token. */
  async #remove(subject: Subject): Promise<void> {
    const { failure } = await this.#patiently(() => inBand(this.delete(subject)));
    const isFenced = failure !== undefined && failure.fencingToken > 0n;
    if (failure !== undefined && codeName(failure) !== 'NotFound') {
      await this.deleted(subject, isFenced ? { token: failure.fencingToken + 1n } : {});
    }
  }

  /** Those that the machine does not answer for any more; names are ours alone. */
  async #removeDoubles(subject: Subject): Promise<void> {
    if (!this.capabilities.methods.has('ListMachines')) return;
    for (const vm of await this.list(subject)) {
      if (vm.machineName === subject.name) await this.#remove({ ...subject, uid: '', providerID: vm.providerId });
    }
  }

  #under(sent: Sent): Sent {
    return { ...sent, signal: sent.signal === undefined ? this.#signal : AbortSignal.any([sent.signal, this.#signal]) };
  }

  async #pause(): Promise<void> {
    await this.#clock.sleep(Math.min(PAUSE_MS, this.options.lagMs ?? PAUSE_MS), this.#signal);
  }
}

/** A VM that may be left, with all that it may be found by at the provider. */
function describeLeft({ cluster, namespace, name, uid }: Subject, ids: readonly string[]): string {
  const found = ids.length === 0 ? '' : ` (provider ID ${ids.join(', ')})`;
  return `VM of machine ${namespace}/${name} with UID ${uid} in cluster ${cluster}${found}`;
}

function keyOf({ cluster, namespace, name, uid }: Subject): string {
  return JSON.stringify([cluster, namespace, name, uid]);
}

/** A creation that the provider goes on with, whose id is not known yet. */
function isUnderWay({ failure, vm }: CreateMachineResponse): boolean {
  return failure !== undefined && codeName(failure) === 'Uninitialized' && vm === undefined;
}

/** An answer, or the status NOT_FOUND as one. */
async function inBand<R extends { readonly failure: Failure | undefined }>(
  answer: Promise<R>,
): Promise<Pick<R, 'failure'> & Partial<R>> {
  try {
    return await answer;
  } catch (err) {
    if (!(err instanceof NoAnswer) || err.status !== Status.NOT_FOUND) throw err;
    return { failure: NOT_FOUND } as Pick<R, 'failure'> & Partial<R>; // the failure of every answer is of this type
  }
}

/** The provider was not asked for anything, since it or the driver did not take what was sent. */
function isRefusal(failure: Failure | undefined): boolean {
  return failure !== undefined && REFUSALS.includes(codeName(failure));
}

function existing(method: string, vm: VirtualMachine | undefined): VirtualMachine {
  if (vm === undefined || vm.providerId === '')
    throw new Violation(`${method} returned no provider ID`, 'vm.provider_id');
  return vm;
}
