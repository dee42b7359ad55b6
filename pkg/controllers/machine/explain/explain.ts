import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { CREATION } from '../creation/facts.ts';
import { DELETION, TERMINATING } from '../deletion/facts.ts';
import {
  descriptionOf,
  explanation,
  fact,
  type Explanation,
  type Fact,
  type MachineExplanation,
} from '../explanation.ts';
import { HEALTH } from '../health/facts.ts';
import { explainInPlace } from '../in-place/facts.ts';
import { inMaintenance } from '../maintenance/facts.ts';
import { whileNodeDeleted } from '../node/deleted-node-condition.ts';
import { inOutage } from '../outage-fact.ts';
import { explainPreparation } from '../preparation/facts.ts';
import { preserved } from '../preservation/facts.ts';
import { whileVMDeletionRequested } from './vm-deletion.ts';

/** What the steps say of a machine, what matters most first. */
const FACTS: readonly Fact[] = [
  inOutage,
  ...DELETION,
  fact(explainPreparation),
  inMaintenance,
  preserved,
  whileNodeDeleted,
  fact(explainInPlace),
  whileVMDeletionRequested,
  ...CREATION,
  ...HEALTH,
  TERMINATING,
];

/**
 * Explains a Machine as it was read at `nowMs` (ms since the epoch). `outage`: what its owners say of a cluster that does not
 * answer, so that nothing is done.
 */
export function explain(machine: Machine, nowMs: number, outage?: string): MachineExplanation {
  const phase = phaseOf(machine);
  const asked = { nowMs, outage };
  const said = FACTS.reduceRight<() => Explanation>(
    (rest, one) => () => one(machine, rest, asked),
    () => explanation(phase, descriptionOf(machine), undefined, 'Nothing.'),
  );
  const since = sinceOf(machine);
  return { phase, ...said(), sinceMs: since === undefined ? undefined : Math.max(0, nowMs - since) };
}

function sinceOf(machine: Machine): number | undefined {
  const { metadata, status } = machine;
  if (isBeingDeleted(machine)) return fromTimestamp(metadata.deletionTimestamp);
  return fromTimestamp(status?.currentStatus?.lastUpdateTime) ?? fromTimestamp(metadata.creationTimestamp);
}
