import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { isDeletedByForce } from '../../driver/concerned-clusters.ts';
import type { Explanation, Fact } from './explanation.ts';

const REASON = 'APIServerUnreachable';

/**
 * The explanation of a machine of which nothing is changed because a cluster does not answer; `outage` says which, in the words of
 * describeBlockingOutages. Without one, and of a machine that does not wait for its target cluster, the explanation is as it was.
 */
export function withOutage(machine: Machine, outage: string | undefined, explanation: Explanation): Explanation {
  const waitsForNobody =
    isDeletedByForce(machine) || explanation.reason === 'KeptByOthers' || explanation.reason === REASON;
  if (outage === undefined || waitsForNobody) return explanation;
  return {
    reason: REASON,
    message: outage,
    waitingFor: 'the API server to answer',
    nextStep: `Nothing until then; it continues where it stopped (${explanation.reason}).`,
  };
}

/** The fact that nothing is done because a cluster does not answer. */
export const inOutage: Fact = (machine, rest, { outage }) => withOutage(machine, outage, rest());
