import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type { Writer } from '../../../kube/client/client.ts';
import type { MachineEventSink } from '../../machine-facts/events.ts';
import { isWorthReporting } from '../../machine-facts/node-refusal.ts';
import type { MachineContext } from '../context.ts';
import type { RefusedRecords } from './refused-record.ts';
import { writeMachineRecord, writeStatus } from './write.ts';

export interface PassWritesDeps {
  readonly writer: Writer;
  readonly clock: Clock;
  readonly recorder: MachineEventSink;
  readonly refused: RefusedRecords;
}

/** The end of a pass: at most one patch of the Machine and one of its status, each only when something changed; then its Events. */
export async function writePass(deps: PassWritesDeps, ctx: MachineContext): Promise<void> {
  const { writer, refused } = deps;
  let base: Machine | undefined;
  try {
    base = await writeMachineRecord(writer, ctx);
  } catch (err) {
    const instead = isWorthReporting(err) ? refused.withoutRecord(ctx, err) : undefined;
    if (instead === undefined) throw err;
    await writeReportedStatus(deps, instead.ctx, ctx.observed, instead.refusal);
    if (instead.failed) throw err;
    return;
  }
  await writeReportedStatus(deps, ctx, base, refused.leftAfter(ctx));
}

async function writeReportedStatus(
  deps: PassWritesDeps,
  ctx: MachineContext,
  base: Machine | undefined,
  refusal: string | undefined,
): Promise<void> {
  const { refused, recorder } = deps;
  try {
    if (base !== undefined) await writeStatus(deps, ctx, base, refusal);
  } catch (err) {
    const event = isWorthReporting(err) ? refused.refusedStatus(ctx, err) : undefined;
    if (event !== undefined) recorder.event(event);
    throw err;
  }
  ctx.pass.complete((event) => recorder.event({ ...event, object: ctx.machine }));
}
