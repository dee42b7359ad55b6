import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { resolveIntOrPercent } from '../../apis/int-or-percent.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import { isPreserved } from './preserved.ts';

/** How many machines of one MachineDeployment are replaced at once unless it says otherwise. */
const DEFAULT_LIMIT = 1;

/**
 * The limit that annotation `machine.sapcloud.io/max-replacements` asks for: a count (0 stops replacement), or a percentage
 * of the desired replicas, rounded down but at least 1. Anything else counts as absent.
 */
export function replacementLimit(annotation: string | undefined, replicas: number): number {
  return annotation === undefined ? DEFAULT_LIMIT : (readLimit(annotation, replicas) ?? DEFAULT_LIMIT);
}

export function isReplacementLimit(text: string): boolean {
  return readLimit(text, 1) !== undefined;
}

function readLimit(annotation: string, replicas: number): number | undefined {
  const text = annotation.trim();
  const isPercent = text.endsWith('%');
  const value = isPercent ? text : /^\d+$/.test(text) ? Number(text) : undefined;
  const limit = resolveIntOrPercent(value, replicas, 'down');
  return limit !== undefined && isPercent ? Math.max(1, limit) : limit;
}

/**
 * How many machines of a MachineDeployment are being replaced. A replacement shows twice, as the machine that leaves (Failed,
 * Terminating, or in `condemned`) and as the one that comes (no phase yet, Pending, CrashLoopBackOff): the greater number
 * counts, so that neither a long drain nor a slow VM hides one. Preserved Failed machines are kept, not replaced, until their time is over.
 * One whose update in place is over, and that does not run, waits for its own turn, like any that is unhealthy: two of them would wait for each
 * other.
 */
export function replacementsUnderWay(
  machines: readonly Machine[],
  condemned: ReadonlySet<string>,
  nowMs: number,
): number {
  let leaving = 0;
  let coming = 0;
  let updating = 0;
  for (const machine of machines) {
    const fate = condemned.has(machine.metadata.uid) ? 'leaving' : replacementOf(machine, nowMs);
    if (fate === 'leaving') leaving++;
    else if (fate === 'coming') coming++;
    else if (fate === 'updating') updating++;
  }
  return Math.max(leaving, coming) + updating;
}

/** Whether one more machine may become Failed for bad health. `others` are the machines it shares the limit with. */
export function mayReplace(
  others: readonly Machine[],
  condemned: ReadonlySet<string>,
  { limit, nowMs }: { readonly limit: number; readonly nowMs: number },
): boolean {
  return replacementsUnderWay(others, condemned, nowMs) < limit;
}

function replacementOf(machine: Machine, nowMs: number): 'leaving' | 'coming' | 'updating' | 'staying' {
  if (isBeingDeleted(machine)) return 'leaving';
  const phase = phaseOf(machine);
  switch (phase) {
    case 'Terminating':
      return 'leaving';
    case 'Failed':
      return isPreserved(machine, nowMs) ? 'staying' : 'leaving';
    case '':
    case 'Pending':
    case 'CrashLoopBackOff':
      return 'coming';
    case 'InPlaceUpdating':
      return 'updating';
    default:
      return 'staying';
  }
}
