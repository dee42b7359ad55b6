import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { describeFieldErrors, type FieldError } from '../../apis/machine/v1alpha1/validation.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import { MINUTE_MS } from '../../base/clock/clock.ts';
import type { Finalizer } from '../../work/reconcile/finalizer.ts';
import { PassNotes } from '../../work/reconcile/object-pass/pass-notes.ts';
import { ReportedOnce } from '../../work/reconcile/reported-once.ts';
import { next, runSteps, stop, type Step, type StepResult } from '../../work/reconcile/result.ts';
import { isFirstFailure, isWorthReporting } from '../machine-facts/node-refusal.ts';
import { isUnfreezeRequested } from './freeze-marks.ts';
import { describeRefusedChange } from './refused-change.ts';

/** Without events an owner is looked at again after this time, in case one was missed; the look writes nothing. */
const RESYNC_MS = 10 * MINUTE_MS;

export type Owner = MachineSet | MachineDeployment;

/** One pass over an owner of Machines, and what its steps tell those after them. */
export interface OwnerPass<T extends Owner> {
  readonly key: string;
  readonly signal: AbortSignal;
  /** Timers. */
  readonly notes: PassNotes<never>;
  /** Why the spec cannot be obeyed. */
  readonly invalid: string | undefined;
  /** As it was read, or as a step has written it. */
  object: T;
  /** What has to be retried, once the status was written. */
  error?: unknown;
  /** A change that the API server, a policy or a webhook rejects: condition ReplicaFailure and an Event tell of it. */
  refusal?: string | undefined;
  /** The rejection has ended the work: the spec is not obeyed. */
  isCutShort?: boolean;
}

interface Phase<P> {
  /** Run up to the first that does not say `next`. */
  readonly work: readonly Step<P>[];
  /** Run afterwards, unless a step of the work has thrown what another try may cure. After a rejection the status shows what is true now. */
  readonly end: readonly Step<P>[];
}

export interface OwnerKind<T extends Owner, P extends OwnerPass<T>> {
  readonly objects: Pick<Lister<T>, 'get'>;
  readonly validate: (object: T) => readonly FieldError[];
  readonly begin: (pass: OwnerPass<T>) => P;
  /** Shows the pass what the caches show now, our own writes included. */
  readonly observe: (pass: P) => void;
  readonly deletion: Phase<P>;
  /** Its annotation asks for the end of its freeze. */
  readonly release: Phase<P>;
  /** Its spec cannot be obeyed. */
  readonly invalid: Phase<P>;
  readonly upkeep: Phase<P>;
  /** Tells of what was rejected. */
  readonly tell: (pass: P) => void;
  /** After which times there is something to do without an event. */
  readonly dueInMs: (pass: P) => readonly (number | undefined)[];
  /** The owner is gone, or another one has its name. */
  readonly forget: (key: string, uid: string) => void;
}

/**
 * Runs the passes over owners of one kind. They write as they go, because what a step decides depends on what the one before has made of
 * other objects: so the caches are looked at before each step.
 */
export class OwnerController<T extends Owner, P extends OwnerPass<T>> {
  readonly #kind: OwnerKind<T, P>;
  /** Those that have been seen: a key tells of no UID any more once its object is gone. */
  readonly #uids = new Map<string, string>();
  readonly #reportedOnce = new ReportedOnce();

  constructor(kind: OwnerKind<T, P>) {
    this.#kind = kind;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const { objects, validate, begin, observe, dueInMs, upkeep } = this.#kind;
    const object = objects.get(key);
    this.#forgetOthers(key, object?.metadata.uid);
    if (object === undefined) return stop;

    const errors = isBeingDeleted(object) ? [] : validate(object);
    const invalid = errors.length === 0 ? undefined : describeFieldErrors(errors);
    const pass = begin({ key, object, invalid, signal, notes: new PassNotes() });
    const phase = this.#phaseOf(pass);
    const result = await runSteps(phase.work, pass, () => observe(pass)).catch((err: unknown) => {
      if (!isWorthReporting(err)) throw err;
      if (isFirstFailure(err, this.#reportedOnce, object.metadata.uid, 'its work failed')) throw err;
      Object.assign(pass, { error: err, isCutShort: true, refusal: describeRefusedChange(err) });
      return stop;
    });
    if (pass.isCutShort !== true) this.#reportedOnce.forget(object.metadata.uid);
    try {
      await runSteps(phase.end, pass, () => observe(pass));
    } finally {
      this.#kind.tell(pass);
    }
    if (pass.error !== undefined) throw pass.error;
    for (const afterMs of phase === upkeep ? [RESYNC_MS, ...dueInMs(pass)] : []) {
      if (afterMs !== undefined) pass.notes.alsoAfter(afterMs, 'changes of its machines');
    }
    return pass.notes.resultOf(result);
  }

  #phaseOf({ object, invalid }: P): Phase<P> {
    if (isBeingDeleted(object)) return this.#kind.deletion;
    if (isUnfreezeRequested(object)) return this.#kind.release;
    return invalid === undefined ? this.#kind.upkeep : this.#kind.invalid;
  }

  #forgetOthers(key: string, uid: string | undefined): void {
    const before = this.#uids.get(key);
    if (before !== undefined && before !== uid) {
      this.#reportedOnce.forget(before);
      this.#kind.forget(key, before);
    }
    if (uid === undefined) this.#uids.delete(key);
    else this.#uids.set(key, uid);
  }
}

export function addFinalizer<T extends Owner>(finalizer: Finalizer<T>): Step<OwnerPass<T>> {
  return {
    name: 'finalizer',
    async run(pass) {
      pass.object = await finalizer.add(pass.object, pass.signal);
      return next;
    },
  };
}
