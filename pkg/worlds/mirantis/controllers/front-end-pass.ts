import { copyOfObject } from '../../../apis/copy.ts';
import { FRONT_END_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { refOf, type KubeObject } from '../../../apis/meta.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';
import type { Writer } from '../../../kube/client/client.ts';
import { type Patch } from '../../../kube/client/patch.ts';
import type { Resource } from '../../../apis/resource.ts';
import { type FieldPath, ownedPatch } from '../../../work/reconcile/object-pass/owned-fields.ts';
import { PassNotes } from '../../../work/reconcile/object-pass/pass-notes.ts';
import { writeRecord } from '../../../work/reconcile/object-pass/record.ts';
import { runPass } from '../../../work/reconcile/object-pass/run-pass.ts';
import { stop, type StepResult } from '../../../work/reconcile/result.ts';
import type { ReportedChange } from './events.ts';
import type { Problem } from './field-reader.ts';
import { checkAgain, isRequestRejected } from './front-end.ts';

export interface FrontEndPass<T extends KubeObject> {
  readonly observed: T;
  /** The copy: what it changes is written when it has run. */
  readonly object: T;
  readonly signal: AbortSignal;
}

export interface FrontEndOutcome {
  /** What keeps us from doing what is asked for. */
  readonly problems?: readonly Problem[];
  /** Undefined: something that is watched will wake the pass. */
  readonly again?: StepResult;
}

/** What is special about one kind of objects of the front end. */
export interface FrontEndKind<T extends KubeObject> {
  readonly writer: Pick<Writer, 'patch'>;
  readonly recorder: ObjectEvents<T>;
  readonly resource: Resource<T>;
  /** What is ours outside of the status. */
  readonly owned: readonly FieldPath[];
  /** The status of an object that has these problems; undefined: it says so already. */
  readonly statusOf: (object: T, problems: readonly Problem[]) => FrontEndStatus | undefined;
}

export interface FrontEndStatus {
  readonly patch: Patch;
  readonly events: readonly ReportedChange[];
}

/**
 * Runs one pass, and writes at most one patch of the object and one of its status. What the API server refuses to have done for it is one of
 * its problems, and is tried again. A pass that fails otherwise says nothing in the status. Throws ApiError and GateClosedError.
 */
export async function runFrontEndPass<T extends KubeObject>(
  kind: FrontEndKind<T>,
  observed: T,
  signal: AbortSignal,
  run: (pass: FrontEndPass<T>) => Promise<FrontEndOutcome>,
): Promise<StepResult> {
  const { writer, recorder, resource, owned, statusOf } = kind;
  const object = copyOfObject(observed);
  const notes = new PassNotes<ReportedChange>();
  let outcome: FrontEndOutcome | undefined;

  const attempt = async (): Promise<StepResult> => {
    outcome = await run({ observed, object, signal }).catch((err: unknown) => {
      if (!isRequestRejected(err)) throw err;
      const problems = [`refused by the API server: ${err.message}`];
      return { problems, again: checkAgain('the API server to accept the update') };
    });
    return outcome.again ?? stop;
  };

  const write = async (): Promise<void> => {
    const patch = ownedPatch(observed, object, owned);
    const own = { resource, finalizer: FRONT_END_FINALIZER };
    const base = await writeRecord(writer, own, { observed, after: object, patch }, signal);
    const status = base && outcome && statusOf(base, outcome.problems ?? []);
    if (status === undefined) return;
    await writer.patch('change', resource, refOf(observed), status.patch, { signal });
    for (const event of status.events) recorder.event({ object: observed, ...event });
  };

  return await runPass(notes, attempt, write);
}

/** Does what ends an object, which has nothing to say any more unless that is refused. Throws ApiError and GateClosedError. */
export async function runLastPass<T extends KubeObject>(
  kind: FrontEndKind<T>,
  observed: T,
  signal: AbortSignal,
  run: () => Promise<StepResult>,
): Promise<StepResult> {
  try {
    return await run();
  } catch (err) {
    if (!isRequestRejected(err)) throw err;
    return await runFrontEndPass(kind, observed, signal, () => Promise.reject(err));
  }
}
