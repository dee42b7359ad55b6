import { EXCLUDE_DETACH_ANNOTATION, EXCLUDE_DRAIN_ANNOTATION } from '../../../apis/cluster-api/keys.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { next } from '../../../reconcile/result.ts';
import type { MachineStep } from '../machine-pass.ts';
import { waitsToKnow } from './waits.ts';

/** What ends the wait of who knows it already. */
const LET_GO = `Annotations ${EXCLUDE_DRAIN_ANNOTATION} and ${EXCLUDE_DETACH_ANNOTATION} let this Machine go, and its VM, without a drain`;

/**
 * While nothing is known of the cluster of the Node, or which Node it is, nothing is drained and nothing deleted, however long it takes: unless the Cluster goes as a
 * whole, or somebody has said that the Node need not be cared for.
 */
export const reachable: MachineStep = {
  name: 'reachable',
  run(pass) {
    const { node, machine, cluster } = pass;
    const { annotations } = machine.metadata;
    const isLetGo = [EXCLUDE_DRAIN_ANNOTATION, EXCLUDE_DETACH_ANNOTATION].every(
      (one) => annotations?.[one] !== undefined,
    );
    if (isLetGo || isBeingDeleted(cluster)) return next;
    if (node.kind === 'undecided') {
      return waitsToKnow(pass, 'DrainingNode', `Waiting to know its Node: ${node.problem}. ${LET_GO}`);
    }
    if (node.kind !== 'unreachable') return next;
    const text = 'Waiting for the cluster of its Node';
    const event = { type: 'Warning', reason: 'DrainBlocked', why: text } as const;
    return waitsToKnow(pass, 'DrainingNode', `${text}: ${node.why}`, { event });
  },
};
