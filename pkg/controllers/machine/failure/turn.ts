import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { hold, type Hold } from '../../machine-facts/replacement-hold.ts';
import type { PaceFacts } from '../../machine-facts/pace.ts';
import type { TurnDeps } from '../../machine-facts/replacement-turn.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext } from '../context.ts';
import { REPLACEMENT_RETRY_MS } from './held-back.ts';

/** Why a machine is not replaced yet, and when to ask again. */
export interface NotYet {
  readonly held: Hold;
  readonly afterMs: number;
  readonly waitingFor: string;
}

/** Whether its Node is missing together with all others. */
export function nodesMissing(
  { nodesInTarget }: Pick<Collaborators, 'nodesInTarget'>,
  machine: Machine,
): NotYet | undefined {
  if (!nodesInTarget.isMissingWithAll(machine)) return undefined;
  const waitingFor = 'a Node of one of the Machines in the target cluster';
  return { held: hold('target'), afterMs: REPLACEMENT_RETRY_MS, waitingFor };
}

/** Whether nothing of its zone is replaced. */
export function zoneStopped({ zones }: Pick<TurnDeps, 'zones'>, machine: Machine): NotYet | undefined {
  const zone = zones.stoppedZoneOf(machine);
  if (zone === undefined) return undefined;
  const waitingFor = 'more machines of its zone to be healthy';
  return { held: hold('zone', zone.name), afterMs: REPLACEMENT_RETRY_MS, waitingFor };
}

/** Whether others that are unhealthy too had their turn in this health timeout. */
export function paced({ pace }: Pick<Collaborators, 'pace'>, facts: PaceFacts | undefined): NotYet | undefined {
  const waitMs = facts === undefined ? 0 : pace.waitMs(facts);
  if (waitMs === 0) return undefined;
  // Others may recover before, so that it is the only one.
  return {
    held: hold('pace'),
    afterMs: Math.min(waitMs, REPLACEMENT_RETRY_MS),
    waitingFor: 'its turn to be replaced',
  };
}

/**
 * Takes one of the replacements that its MachineDeployment allows, until the write has been made and is visible to the next pass. `isStuck`: see
 * ReplacementBudget.
 */
export function takeGrant(
  { budget }: Pick<Collaborators, 'budget'>,
  { observed, pass }: MachineContext,
  isStuck?: (other: Machine) => boolean,
): NotYet | undefined {
  const grant = budget.tryAcquire(observed, isStuck);
  if (grant !== undefined) {
    pass.hold(grant);
    return undefined;
  }
  const held = hold(budget.poolOf(observed)?.limit === 0 ? 'stopped' : 'limit');
  return { held, afterMs: REPLACEMENT_RETRY_MS, waitingFor: 'other replacements to finish' };
}
