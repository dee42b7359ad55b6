import type { IronCoreMachine } from '../../api/machine.ts';
import {
  CREATION_SENT_ANNOTATION,
  CREATION_SENT_TO_ANNOTATION,
  MISSING_WITH_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION,
} from '../../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, keyOf } from '../../../../apis/meta.ts';
import { toTimestamp } from '../../../../base/clock/clock.ts';
import { GateClosedError } from '../../../../kube/gate/gate.ts';
import { RuntimeError } from '../../runtime/error.ts';
import type { DesiredRuntimeMachine } from '../../runtime/runtime.ts';
import { ApiError } from '../../../../kube/client/errors.ts';
import { requeue, type StepResult } from '../../../../work/reconcile/result.ts';
import { annotateMachine } from './annotate.ts';
import type { PassCollaborators, IronCorePass } from './machine-pass.ts';
import { recipientOf } from './missing-machines.ts';
import { SOON_MS } from './rechecks.ts';

export type CreateDeps = Pick<
  PassCollaborators,
  'writer' | 'clock' | 'reports' | 'uncertainty' | 'hurry' | 'sightings'
>;

/** Has the runtime create a machine. That it was sent, and to whom, is written before. */
export async function createMachine(
  deps: CreateDeps,
  { observed, poolName, runtime, signal }: IronCorePass,
  machine: DesiredRuntimeMachine,
): Promise<StepResult> {
  const { reports, uncertainty, hurry, sightings } = deps;
  const { uid } = observed.metadata;
  const { name: scheme } = await runtime.version(signal);
  const { machineID = '' } = observed.status ?? {};
  // That it is gone was decided on with what this process has seen. Whoever comes after it has not, and would hold the Machine; so the id
  // goes first, and with it that decision is kept. Before it goes the note of the creation of the one before: without an id, that would be
  // taken for a creation without an answer.
  if (machineID !== '') {
    await annotateMachine(deps, observed, NOT_SENT, signal);
    const lost = `The runtime no longer has ${machineID}; creating a new machine`;
    reports.event(observed, 'Warning', 'MachineLost', lost);
    await reports.report(observed, { machineID: '' }, signal);
  }
  // The same of what was seen of one that its status did not name.
  sightings.left(poolName, uid);
  // Whoever comes after this process must not send another one too soon, nor let go of what the machine uses. The note itself may have no
  // answer: nothing was sent then.
  uncertainty.certain(uid);
  const marked = await markCreation(deps, observed, recipientOf(scheme, runtime), signal);
  if (marked === undefined || isBeingDeleted(marked)) {
    // Without it, the deletion would look for what became of that creation.
    await markCreation(deps, observed, undefined, signal);
    // The cache has not heard of it, but is about to: that wakes the Machine.
    return requeue(SOON_MS, 'the deletion of the Machine');
  }
  uncertainty.creating(uid);
  let id: string;
  try {
    id = await runtime.create(keyOf(observed), machine, signal);
  } catch (err) {
    const isUnsent = err instanceof GateClosedError;
    if (isUnsent || (err instanceof RuntimeError && !err.unanswered)) {
      uncertainty.certain(uid);
      // Where it stays, whoever comes after this process waits, and takes no other runtime for the one that it was sent to.
      await markCreation(deps, observed, undefined, signal).catch((why: unknown) => {
        if (!(why instanceof ApiError || why instanceof GateClosedError)) throw why;
      });
    }
    throw err;
  }
  hurry(poolName);
  await reports.report(observed, { machineID: `${scheme}://${id}` }, signal);
  reports.event(observed, 'Normal', 'Created', `Created machine ${id} in MachinePool ${poolName}`);
  // Switched off, where it is to be, and told what became of it.
  return requeue(0, 'the runtime to list the machine');
}

/** Annotations of a Machine of whose creations nobody waits for an answer. */
const NOT_SENT = {
  [CREATION_SENT_ANNOTATION]: null,
  [CREATION_SENT_TO_ANNOTATION]: null,
  [MISSING_WITH_ANNOTATION]: null,
};

/**
 * Notes that a creation is sent to a runtime, or, without one, that none was. Whoever gave up the machine before has allowed one other: if
 * that is missing some day, it is asked again. Resolves with the Machine as it is now; undefined when it is gone. Throws ApiError.
 */
async function markCreation(
  deps: CreateDeps,
  observed: IronCoreMachine,
  recipient: string | undefined,
  signal: AbortSignal,
): Promise<IronCoreMachine | undefined> {
  const sentAt = toTimestamp(deps.clock.now());
  const sent = { ...NOT_SENT, [CREATION_SENT_ANNOTATION]: sentAt, [CREATION_SENT_TO_ANNOTATION]: recipient };
  const givenUp = observed.metadata.annotations?.[GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION];
  const annotations = {
    ...(recipient === undefined ? NOT_SENT : sent),
    // One that the runtime has refused was not made: what was allowed is so still.
    ...(givenUp !== undefined && {
      [GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION]: recipient === undefined ? givenUp : null,
    }),
  };
  return await annotateMachine(deps, observed, annotations, signal);
}
