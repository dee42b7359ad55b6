import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { PaceFacts } from './pace.ts';
import type { Pool, ReplacementBudget } from './replacement-budget.ts';
import { healthTimeoutMsOf, type MachineSettings } from './settings.ts';
import { isUnwell, type Zones } from './zones.ts';

export interface TurnDeps {
  readonly zones: Pick<Zones, 'stoppedZoneOf' | 'unhealthyTogether'>;
  readonly budget: Pick<ReplacementBudget, 'poolOf'>;
  readonly settings: Pick<MachineSettings, 'healthTimeoutMs'>;
}

/**
 * What the pace of its replacement follows from, as one of its pool. `isLost`: which machines are as bad as unhealthy ones, although no Node says
 * so.
 */
export function paceFactsOf(
  { zones, settings }: Pick<TurnDeps, 'zones' | 'settings'>,
  machine: Machine,
  { key, limit, machines }: Pool,
  isLost?: (other: Machine) => boolean,
): PaceFacts {
  const { uid } = machine.metadata;
  const isAlone = !machines.some((one) => one.metadata.uid !== uid && (isUnwell(one) || isLost?.(one)));
  return {
    uid,
    pool: { key, isAlone, limit },
    zone: zones.unhealthyTogether(machine, isLost),
    healthTimeoutMs: healthTimeoutMsOf(machine, settings),
  };
}
