import { nodeNameOf, phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { MACHINE_FINALIZER, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type { ApiError } from '../../../kube/client/errors.ts';
import { isRelease } from '../../../work/reconcile/object-pass/record.ts';
import { Backoff } from '../../../work/workqueue/backoff.ts';
import { deletionStageOf, describeStage, textOfStage } from '../../machine-facts/deletion-stage.ts';
import { MACHINE_EVENTS, type MachineEvent } from '../../machine-facts/events.ts';
import { isUninitialized } from '../../machine-facts/joining.ts';
import { isFirstFailure, reasonFor } from '../../machine-facts/node-refusal.ts';
import {
  beginPhase,
  copyOf,
  isBeingCreated,
  hasMachineFinalizer,
  restartPhase,
  setFailure,
  type MachineCopy,
  type OperationUpdate,
} from '../../machine-facts/status.ts';
import { RECORD_REFUSED } from '../../machine-facts/status-texts.ts';
import { noVMWasRequested } from '../calls/no-vm-requested.ts';
import { refusalShownBy } from '../explain/conditions.ts';
import type { Collaborators } from '../collaborators.ts';
import { type MachineContext, MachineNotes } from '../context.ts';
import { refusedSinceMs } from '../creation/waiting-since.ts';
import { ReportedOnce } from '../../../work/reconcile/reported-once.ts';
import { changesOf } from './write.ts';

/** When a machine that goes on without its record tries again to have it written, whatever else happens. */
const RETRIES = { baseMs: 10_000, maxMs: 600_000 };

/** What is written instead of a pass whose record was refused. */
export interface Instead {
  readonly ctx: MachineContext;
  /** What is refused, for a condition; undefined where the last operation says it, which the condition repeats. */
  readonly refusal: string | undefined;
  /** Whether the pass has failed all the same, and is repeated. */
  readonly failed: boolean;
}

/** What this process knows of a Machine that goes on although the API server refuses to record something of it. */
interface RefusedRecord {
  /** What is refused, once it was told. */
  readonly text: string | undefined;
  /** How often in a row, tries aside that came before their time. */
  readonly times: number;
  /** When it is tried again at the latest, monotonic. */
  readonly retryAtMs: number;
  /** Of the pass that was refused: how many of its steps ran, and whether they were those of a deletion. */
  readonly steps: number;
  readonly isDeletion: boolean;
}

/** What the API server refuses to record of Machines. */
export class RefusedRecords {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #activities: Collaborators['activities'];
  readonly #reportedOnce = new ReportedOnce();
  /** Of the Machines that go on without their record, by UID. */
  readonly #refused = new Map<string, RefusedRecord>();

  constructor({ clock, activities, random }: Pick<Collaborators, 'clock' | 'activities' | 'random'>) {
    this.#clock = clock;
    this.#backoff = new Backoff({ ...RETRIES, random });
    this.#activities = activities;
  }

  /**
   * What is left of a pass when the API server refuses what it changed outside of the status, its record (a Node name that no label can
   * hold, a webhook, a policy). In each case it is told by Event and condition RecordRefused. Undefined: a server that fails once works the next time.
   *
   * | machine                             | status that is written                                     | the pass                    |
   * |-------------------------------------|------------------------------------------------------------|-----------------------------|
   * | in creation: VM, Node, finalizer    | CrashLoopBackOff, the last operation says what is refused  | fails, and is repeated      |
   * | being deleted, to be let go         | the last operation says that its finalizer stays           | fails, and is repeated      |
   * | any other, also one that is deleted | that of the pass                                           | goes on, and comes back     |
   */
  withoutRecord(ctx: MachineContext, err: ApiError): Instead | undefined {
    const { observed, machine } = ctx;
    // A webhook that does not work fails again.
    if (isFirstFailure(err, this.#reportedOnce, observed.metadata.uid, 'recording failed')) return undefined;
    if (isRelease(MACHINE_FINALIZER, observed, machine)) return this.#held(ctx, err);
    return isBeingCreated(observed) && !isBeingDeleted(observed) && isNeededForVM(ctx)
      ? this.#waiting(ctx, err)
      : this.#ongoing(ctx, err);
  }

  /** An Event of a status that the API server refuses; undefined when it was told already. Nothing else can tell of it. */
  refusedStatus({ observed }: MachineContext, err: ApiError): MachineEvent | undefined {
    const { uid, name } = observed.metadata;
    if (isFirstFailure(err, this.#reportedOnce, uid, 'writing the status failed')) return undefined;
    const message = `${RECORD_REFUSED}the status of the machine: ${reasonFor(err, name)}`;
    if (!this.#reportedOnce.isNew(uid, message)) return undefined;
    return { object: observed, type: MACHINE_EVENTS.RecordRefused, reason: 'RecordRefused', message };
  }

  /**
   * What is still refused after a pass of which nothing was; undefined when nothing is. A pass that had nothing to record, and ended
   * earlier than the one that was refused or began another phase, says nothing of what that one asked for.
   */
  leftAfter({ observed, machine, pass }: MachineContext): string | undefined {
    const { uid } = observed.metadata;
    const known = this.#refused.get(uid);
    const isPart = phaseOf(observed) !== phaseOf(machine) || pass.steps < (known?.steps ?? 0);
    const saysNothing = isPart && changesOf(observed, machine).length === 0;
    if (known?.isDeletion === isBeingDeleted(observed) && saysNothing) return known.text;
    this.#refused.delete(uid);
    return undefined;
  }

  forget(uid: string): void {
    this.#refused.delete(uid);
    this.#reportedOnce.forget(uid);
  }

  /** The VM has the whole creation timeout from the first refusal on. */
  #waiting(ctx: MachineContext, err: ApiError): Instead {
    const { observed } = ctx;
    const copy = copyOf(observed);
    // What else the pass noted comes about with its record.
    const told = { ...ctx, machine: copy, pass: new MachineNotes() };
    if (!hasMachineFinalizer(observed) && noVMWasRequested(this.#activities, observed)) {
      beginPhase(copy, 'CrashLoopBackOff', this.#clock.now());
      return this.#fails(told, { type: 'Create', errorCode: 'FinalizerRefused', description: describe(ctx, err) });
    }
    if (refusedSinceMs(observed) === undefined) restartPhase(copy, 'CrashLoopBackOff', this.#clock.now());
    // Lost from here, nothing would say it in the moment in which the record is accepted.
    const isToBeInitialized = providerIDOf(observed) === '' && isUninitialized(ctx.machine);
    const errorCode = isToBeInitialized ? 'VMBeingInitialized' : 'RecordRefused';
    return this.#fails(told, { type: 'Create', errorCode, description: describe(ctx, err) });
  }

  /** Nothing is left of the machine but its object. */
  #held(ctx: MachineContext, err: ApiError): Instead {
    const { observed, pass } = ctx;
    pass.unrecorded();
    const text = `The API server refuses to remove finalizer ${MACHINE_FINALIZER}: ${reasonFor(err, observed.metadata.name)}.`;
    const description = describeStage(deletionStageOf(ctx.machine) ?? 'release-finalizer', text);
    return this.#fails(
      { ...ctx, machine: asRecorded(ctx) },
      { type: 'Delete', errorCode: 'RecordRefused', description },
    );
  }

  #fails(
    ctx: MachineContext,
    failed: Required<Pick<OperationUpdate, 'type' | 'description'>> & {
      errorCode: 'FinalizerRefused' | 'RecordRefused' | 'VMBeingInitialized';
    },
  ): Instead {
    const { observed, machine, pass } = ctx;
    const { description } = failed;
    setFailure(machine, { ...failed, state: 'Failed' }, this.#clock.now());
    if (observed.status?.lastOperation?.description !== description)
      pass.event('RecordRefused', textOfStage(description));
    return { ctx, refusal: undefined, failed: true };
  }

  #ongoing(ctx: MachineContext, err: ApiError): Instead {
    const { observed, pass, log } = ctx;
    const { uid } = observed.metadata;
    const refusal = describe(ctx, err);
    const known = this.#refused.get(uid);
    const reached = { steps: pass.steps, isDeletion: isBeingDeleted(observed) };
    const next = { ...this.#nextTry(known, this.#clock.monotonicMs()), ...reached };
    this.#refused.set(uid, { ...next, text: known?.text });
    pass.unrecorded();
    pass.afterWrite(() => this.#refused.set(uid, { ...next, text: refusal }));
    if (known?.text !== refusal && refusalShownBy(observed) !== refusal) {
      pass.event('RecordRefused', refusal);
      pass.afterWrite(() => log.warn({ refusal }, 'continued without recording a machine'));
    }
    pass.alsoAfter(next.retryAtMs - this.#clock.monotonicMs(), 'the API server to accept the refused record');
    return { ctx: { ...ctx, machine: asRecorded(ctx) }, refusal, failed: false };
  }

  /** Events make passes too, as many as they like: only a try that was due counts. */
  #nextTry(known: RefusedRecord | undefined, nowMs: number): Pick<RefusedRecord, 'times' | 'retryAtMs'> {
    if (known !== undefined && nowMs < known.retryAtMs) return { times: known.times, retryAtMs: known.retryAtMs };
    const times = (known?.times ?? 0) + 1;
    return { times, retryAtMs: nowMs + this.#backoff.delayMs(times) };
  }
}

/** Without our finalizer no VM is asked for, and one that is not recorded is not told as there. */
function isNeededForVM({ observed, machine }: MachineContext): boolean {
  const isVM = machine.spec.providerID !== observed.spec?.providerID;
  const isNode = machine.metadata.labels?.[NODE_LABEL] !== observed.metadata.labels?.[NODE_LABEL];
  return isVM || isNode || hasMachineFinalizer(machine) !== hasMachineFinalizer(observed);
}

/** The status of the pass on the record as it is. */
function asRecorded({ observed, machine }: MachineContext): MachineCopy {
  return { ...copyOf(observed), status: machine.status };
}

function describe({ observed, machine }: MachineContext, err: ApiError): string {
  const { providerID = '' } = machine.spec;
  const what =
    providerID === providerIDOf(observed)
      ? changesOf(observed, machine).join(', ')
      : `VM ${providerID} with Node name ${nodeNameOf(machine)}`;
  return `${RECORD_REFUSED}${what}: ${reasonFor(err, machine.metadata.name)}`;
}
