import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp, MINUTE_MS } from '../../../clock/clock.ts';
import type { Node } from '../../../apis/wire.ts';
import type { MachineContext } from '../context.ts';
import type { ForceReason } from '../memory.ts';
import { drainTimeoutMsOf } from '../settings.ts';
import { clustersOf } from '../steps/fail.ts';
import { isForced } from './cursor.ts';

/** A Node that is broken for longer cannot end its pods by itself. Fixed, as in the original. */
const BROKEN_AFTER_MS = 5 * MINUTE_MS;

/** When a normal drain becomes a forced one: the deletion was asked for a whole drain timeout ago. Wall time. */
export function drainDeadlineMs({ machine, settings, clock }: MachineContext): number {
  const askedMs = fromTimestamp(machine.metadata.deletionTimestamp) ?? clock.now();
  return askedMs + drainTimeoutMsOf(machine, settings);
}

/**
 * Why pods are to be deleted instead of evicted; undefined when they are not. That a Node is broken is believed only after a
 * live look at Machine and Node, and not in the grace after a freeze, when all Nodes look broken.
 */
export async function forceReasonOf(ctx: MachineContext, node: Node): Promise<ForceReason | undefined> {
  const { clock, trust, pass } = ctx;
  if (isForced(ctx)) return 'label';
  const leftMs = drainDeadlineMs(ctx) - clock.now();
  if (leftMs <= 0) return 'timeout';
  pass.alsoAfter(leftMs, 'the drain timeout');

  const broken = brokenness(node, clock.now());
  if (broken === undefined) return undefined;
  const graceMs = Math.max(broken.inMs, trust.graceLeftMs(clustersOf(ctx)));
  if (graceMs <= 0) return (await isStillBroken(ctx, node)) ? broken.reason : undefined;
  pass.alsoAfter(graceMs, 'the Node to recover');
  return undefined;
}

interface Brokenness {
  readonly reason: ForceReason;
  /** In how many milliseconds it has lasted too long; negative: it has. */
  readonly inMs: number;
}

/** The condition that will force the drain first, or does already. */
export function brokenness(node: Node, nowMs: number): Brokenness | undefined {
  const found: Brokenness[] = [];
  for (const { type, status, lastTransitionTime } of node.status?.conditions ?? []) {
    const inMs = (fromTimestamp(lastTransitionTime) ?? nowMs) + BROKEN_AFTER_MS - nowMs;
    if (type === 'Ready' && status !== 'True') found.push({ reason: 'not-ready', inMs });
    if (type === 'ReadonlyFilesystem' && status !== 'False') found.push({ reason: 'readonly-filesystem', inMs });
  }
  return found.toSorted((a, b) => a.inMs - b.inMs)[0];
}

async function isStillBroken(
  { observed, nodes, readMachine, clock, signal }: MachineContext,
  node: Node,
): Promise<boolean> {
  const [machine, live] = await Promise.all([readMachine(observed, signal), nodes?.read(node.metadata.name, signal)]);
  if (machine?.metadata.uid !== observed.metadata.uid || !isBeingDeleted(machine)) return false;
  if (live?.metadata.uid !== node.metadata.uid) return false;
  return (brokenness(live, clock.now())?.inMs ?? 1) <= 0;
}
