import type { ProviderCondition } from '../api/machine.ts';
import { listed } from './listed.ts';

/** Reasons of the Events of the front end, by the condition that has changed; of LCM that of a problem and any other. */
export const EVENT_REASONS = {
  LCM: { Warning: 'Problem', Normal: 'Progress' },
  Kubelet: { Warning: 'KubeletNotReady', Normal: 'KubeletReady' },
  Maintenance: { Warning: 'MaintenanceProblem', Normal: 'MaintenanceProgress' },
  Deletion: { Warning: 'DeletionProblem', Normal: 'DeletionProgress' },
} as const;

type ReportedType = keyof typeof EVENT_REASONS;

export interface ReportedChange {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** What is told of conditions that say something else than before; `wrong`: the types of those that somebody has to look at. */
export function reportableChanges(
  before: readonly ProviderCondition[] | undefined,
  after: readonly ProviderCondition[] | undefined,
  wrong: ReadonlySet<string>,
): readonly ReportedChange[] {
  const known = listed(before);
  return listed(after).flatMap(({ type, ready, message }) => {
    const was = known.find((one) => one.type === type);
    const isSame = was?.ready === ready && was.message === message;
    // That there is no Node yet is nothing that happens.
    if (!isTelling(type) || isSame || (type === 'Kubelet' && was === undefined)) return [];
    const tone = wrong.has(type) ? 'Warning' : 'Normal';
    return [{ type: tone, reason: EVENT_REASONS[type][tone], message }];
  });
}

function isTelling(type: string): type is ReportedType {
  return type in EVENT_REASONS;
}
