import { capital } from '../../../apis/capital.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { controllerOf } from '../../../apis/meta.ts';
import { NODE_SYNC_REFUSED, refusedFor } from '../../machine-facts/node-refusal.ts';
import { holdOf, type Hold, type ReplacementHoldKind } from '../../machine-facts/replacement-hold.ts';
import {
  descriptionOf,
  explanation,
  HEALTHY,
  inPhase,
  nodeTextOf,
  type Explanation,
  type Fact,
} from '../explanation.ts';

/** Facts of machines that have, or had, a Node. */
export const HEALTH: readonly Fact[] = [
  inPhase('Running', explainRunning),
  inPhase('Unknown', explainUnknown),
  inPhase('Failed', explainFailed),
];

function explainRunning(machine: Machine): Explanation {
  const refused = refusedFor(machine);
  const healthy = `${capital(nodeTextOf(machine))} is healthy.`;
  return refused === undefined
    ? explanation('Running', healthy, undefined, HEALTHY)
    : explanation(
        NODE_SYNC_REFUSED,
        `${healthy} Changes to it are refused: ${refused}`,
        'the node template, or what refuses it, to be corrected',
        'The attempt is retried, with increasing delays, and immediately when the template is corrected.',
      );
}

function explainUnknown(machine: Machine): Explanation {
  const held = holdOf(machine);
  if (held !== undefined) return explainHeld(machine, held);
  return explanation(
    'Unhealthy',
    descriptionOf(machine) || `${capital(nodeTextOf(machine))} is not healthy.`,
    `${nodeTextOf(machine)} to become healthy`,
    machine.spec.disableHealthTimeout === true
      ? 'Nothing: the machine is kept, because disableHealthTimeout is set.'
      : 'At the health timeout it becomes Failed and is replaced.',
  );
}

/** Its health timeout has passed, but it is not its turn. */
function explainHeld(machine: Machine, { kind }: Hold): Explanation {
  const { reason, waitingFor, after = '' } = HELD[kind];
  const then = `It is replaced unless its Node becomes healthy first; if the Node was deleted, it is replaced anyway.${after}`;
  return explanation(reason, descriptionOf(machine), waitingFor, then);
}

const HELD: Readonly<Record<ReplacementHoldKind, { reason: string; waitingFor: string; after?: string }>> = {
  target: {
    reason: 'NoNodesInTarget',
    waitingFor: 'a Node of one of the Machines in the target cluster',
    after: ' To replace it now, delete the Machine.',
  },
  zone: {
    reason: 'ZoneUnhealthy',
    waitingFor: 'more machines of its zone to be healthy',
    after: ' To replace it now, delete the Machine.',
  },
  stopped: { reason: 'ReplacementStopped', waitingFor: 'annotation machine.sapcloud.io/max-replacements to allow it' },
  pace: {
    reason: 'ReplacementPaced',
    waitingFor: 'its turn, one health timeout after the replacements before it',
    after: ' To replace it now, delete the Machine.',
  },
  limit: { reason: 'ReplacementDelayed', waitingFor: 'other replacements to finish' },
  grace: { reason: 'SafetyGrace', waitingFor: 'the grace period after a restart or outage to end' },
};

function explainFailed(machine: Machine): Explanation {
  const owner = controllerOf(machine);
  return owner === undefined
    ? explanation('Failed', descriptionOf(machine), undefined, 'Delete the Machine: it is not replaced automatically.')
    : explanation(
        'Failed',
        descriptionOf(machine),
        `${owner.kind} ${owner.name} to replace it`,
        'It is deleted, and replaced by a new one.',
      );
}
