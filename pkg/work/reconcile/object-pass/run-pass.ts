import type { StepResult } from '../result.ts';
import type { PassNotes } from './pass-notes.ts';

/**
 * One pass over an object: `run` changes a copy of it, which `write` writes once, also when `run` has failed: the status then says what
 * failed. What was noted for afterwards follows. Resolves with the soonest requeue; throws what `run`, or else the write, has failed with.
 */
export async function runPass(
  pass: PassNotes<unknown>,
  run: () => Promise<StepResult>,
  write: () => Promise<void>,
): Promise<StepResult> {
  using notes = pass;
  const [ran] = await Promise.allSettled([run()]);
  await write();
  await notes.runAfterwards();
  if (ran.status === 'rejected') throw ran.reason;
  return notes.resultOf(ran.value);
}
