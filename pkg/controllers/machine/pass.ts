import { runSteps, type StepResult } from '../../reconcile/result.ts';
import type { MachineContext, MachineStep } from './context.ts';

/** Writes what a pass has changed, and tells what it noted down. */
export interface PassWriter {
  write(ctx: MachineContext): Promise<void>;
}

/**
 * One pass: the steps change a copy of the Machine, which is written once, also after a failed step: the status then says what failed.
 * Throws what a step or the write has failed with.
 */
export async function runPass(
  steps: readonly MachineStep[],
  ctx: MachineContext,
  writer: PassWriter,
): Promise<StepResult> {
  using notes = ctx.pass;
  const [run] = await Promise.allSettled([runSteps(steps, ctx, () => (notes.steps += 1))]);
  await writer.write(ctx);
  await notes.runAfterwards();
  if (run.status === 'rejected') throw run.reason;
  return notes.resultOf(run.value);
}
