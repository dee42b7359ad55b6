import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../apis/meta.ts';
import type { NodeAccess } from '../machine-facts/node-access.ts';
import type { Collaborators } from './collaborators.ts';
import { creationTime } from './creation/creation-timeout.ts';
import { healthTime } from './health/health-timeout.ts';
import { clustersOf } from './failure/fail.ts';

type Deps = Pick<Collaborators, 'settings' | 'clock' | 'trust' | 'activities' | 'machines'>;

/** Which timeout makes a machine Failed, and in how long. */
export interface TimeToFailure {
  readonly timeout: 'creation' | 'health';
  readonly leftMs: number;
}

/** When a machine becomes Failed if nothing changes; undefined when it does not, or when what we see is not to be trusted. */
export function timeToFailure(deps: Deps, observed: Machine, nodes: NodeAccess | undefined): TimeToFailure | undefined {
  if (phaseOf(observed) === 'Running' || isBeingDeleted(observed)) return undefined;
  if (deps.trust.trustedForMs(clustersOf({ nodes })) === 0) return undefined;
  // Neither changes it, and not every Machine has both members.
  const { spec = {}, status = {} } = observed as Partial<Machine>;
  const ctx = { observed, machine: { ...observed, spec, status }, nodes };
  const health = healthTime(deps, ctx);
  const time = health ?? creationTime(deps, ctx);
  if (time === undefined || time.leftMs <= 0) return undefined;
  return { timeout: health === undefined ? 'creation' : 'health', leftMs: time.leftMs };
}
