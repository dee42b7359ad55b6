import {
  CREATION_SENT_ANNOTATION,
  CREATION_SENT_TO_ANNOTATION,
  MISSING_WITH_ANNOTATION,
} from '../../../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted } from '../../../../apis/meta.ts';
import { fromTimestamp } from '../../../../base/clock/clock.ts';
import { ApiError, isDenial } from '../../../../kube/client/errors.ts';
import { next, requeue } from '../../../../work/reconcile/result.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import { noteDeletion, type DeletionNoteDeps } from './deletion-note.ts';
import type { PassCollaborators, IronCoreStep } from './machine-pass.ts';
import { annotateMachine } from './annotate.ts';
import { missingWithOf, missingWithText, recipientOf } from './missing-machines.ts';
import { SOON_MS } from './rechecks.ts';
import { CLAIMED_BY_ANOTHER } from './rivals.ts';
import { runtimeIDOf } from './runtime-id.ts';
import type { DeletionIntent } from './uncertainty.ts';
import { holdOff, type WaitDeps } from './waiting.ts';

type RivalDeps = WaitDeps & Pick<PassCollaborators, 'rivals' | 'pools' | 'keptUses' | 'hurry'>;

/** Does nothing while somebody else claims machines of the pool, or nobody has looked yet. */
export const yieldToRival = (deps: RivalDeps): IronCoreStep => ({
  name: 'yield-to-rival',
  async run(pass) {
    const { rivals, pools, keptUses, hurry, reports } = deps;
    const { observed, isGoing, poolName, existing, signal } = pass;
    const message = rivals.whyNot(poolName, pools.get(poolName), existing);
    if (message !== undefined) {
      const [seen] = existing;
      const isThere = seen !== undefined && !isGoing;
      const problem = { reason: CLAIMED_BY_ANOTHER, message, ...(isThere && { status: 'Unknown' as const }) };
      return await holdOff(deps, pass, problem, seen);
    }
    if (rivals.has(poolName)) return next;
    const why = keptUses.whyNot(poolName);
    if (why === undefined) hurry(poolName);
    else if (existing.length === 0 || isGoing) {
      const unknown = `MachinePool ${poolName}: its runtime cannot list its machines: ${why}`;
      await reports.report(observed, { problem: { reason: 'RuntimeUnreachable', message: unknown } }, signal);
    }
    return requeue(SOON_MS, 'the first list of all machines of the runtime');
  },
});

/** Does nothing while another runtime answers than the one that has the machine, or that its creation was sent to. */
export const rightRuntime = (deps: WaitDeps & Pick<PassCollaborators, 'missing'>): IronCoreStep => ({
  name: 'right-runtime',
  async run(pass) {
    const { missing, rechecks } = deps;
    const { observed, poolName, runtime, existing, answering, signal } = pass;
    if (existing.length > 0) rechecks.release(observed.metadata.uid);
    else if (answering !== undefined) {
      const doubt = missing.wrongRuntime(observed, poolName, answering);
      if (doubt !== undefined) return await holdOff(deps, pass, doubt);
    } else if (wasSent(observed)) {
      const { name } = await runtime.version(signal);
      const doubt = missing.sentElsewhere(observed, poolName, recipientOf(name, runtime));
      if (doubt !== undefined) return await holdOff(deps, pass, doubt);
    }
    return next;
  },
});

type CertaintyDeps = WaitDeps & DeletionNoteDeps & Pick<PassCollaborators, 'sightings'>;

/**
 * Finds out whether it is certain what there is, and notes what is known of a deletion. Does nothing while the runtime shows too few of the
 * pool's machines to be believed: before anything is given back, made anew, or ended.
 */
export const certainty = (deps: CertaintyDeps): IronCoreStep => ({
  name: 'certainty',
  async run(pass) {
    const { missing, rechecks, uncertainty, reports } = deps;
    const { observed, poolName, runtime, existing, signal } = pass;
    const { uid, annotations } = observed.metadata;
    if (existing.length > 0) {
      uncertainty.forget(uid);
      missing.found(observed);
      pass.uncertainMs = 0;
      // Where that is refused nothing else of it is held: the note counts only while there is none.
      await noteMissingWith(deps, observed, [], signal).catch((err: unknown) => {
        if (!(err instanceof ApiError)) throw err;
      });
      return next;
    }
    if (missing.hadMachine(observed)) uncertainty.vanished(uid, intentOf(deps, observed));
    else {
      const sentAtMs = fromTimestamp(annotations?.[CREATION_SENT_ANNOTATION]);
      uncertainty.recall(uid, sentAtMs, missingWithOf(observed).length > 0);
    }
    pass.uncertainMs = uncertainty.leftMs(uid);
    await noteDeletion(deps, observed, missing.deletionOf(observed), signal);
    const isDue = pass.uncertainMs === 0 || rechecks.isHeld(uid);
    // What is missing beside a creation without an answer may be given up before that is over.
    if (!missing.isMissed(observed) || !(isDue || missing.isUnanswered(observed))) return next;
    const { doubt, missingWith } = await missing.lost(observed, poolName, runtime, isDue, signal);
    if (doubt !== undefined) {
      // Each is written although the other may be refused.
      try {
        return await holdOff(deps, pass, doubt);
      } finally {
        await noteMissingWith(deps, observed, missingWith, signal).catch((err: unknown) => {
          // Its status goes on saying why it is held.
          if (!isDenial(err)) throw err;
          reports.refused(observed, err);
        });
      }
    }
    // What a runtime that is believed again shows may come one after the other, and the last pass may have been a minute ago.
    if (rechecks.release(uid)) {
      uncertainty.distrusted(uid);
      pass.uncertainMs = uncertainty.leftMs(uid);
    }
    // Whoever comes after this process has to wait for that as well.
    if (pass.uncertainMs === 0) await noteMissingWith(deps, observed, missingWith, signal);
    return next;
  },
});

/** Writes on a Machine with which machines its own may be lost: nothing else says so once they are given up. Throws ApiError. */
async function noteMissingWith(
  deps: CertaintyDeps,
  observed: IronCoreMachine,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const text = missingWithText(observed, ids);
  if (text === (observed.metadata.annotations?.[MISSING_WITH_ANNOTATION] ?? null)) return;
  await annotateMachine(deps, observed, { [MISSING_WITH_ANNOTATION]: text }, signal);
}

function intentOf({ sightings, missing }: CertaintyDeps, observed: IronCoreMachine): DeletionIntent {
  const id = runtimeIDOf(observed);
  // Somebody else has told it to go, such as its provider.
  if (id !== '' && sightings.vouchesFor(observed.spec.machinePoolRef?.name ?? '', { id })) return 'going';
  if (!isBeingDeleted(observed)) return 'stay';
  return missing.isExpected(observed) ? 'going' : 'go';
}

/** Whether a creation was sent of which nobody knows what became. */
function wasSent({ metadata, status }: IronCoreMachine): boolean {
  return (status?.machineID ?? '') === '' && metadata.annotations?.[CREATION_SENT_TO_ANNOTATION] !== undefined;
}
