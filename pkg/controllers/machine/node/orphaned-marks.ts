import { isBeingDeleted } from '../../../apis/meta.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import { isDenial } from '../../../kube/client/errors.ts';
import { next } from '../../../work/reconcile/result.ts';
import { hasNoDeployment } from '../../machine-facts/owners.ts';
import { leftRolloutMarks } from '../../machine-facts/rollout-marks.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { namedNode } from './named-node.ts';

const REFUSED_RETRY_MS = 5 * MINUTE_MS;

/**
 * Takes away what a rollout has left on the Node of a Machine that no MachineDeployment owns any more, as after a deletion with
 * `--cascade=orphan`. Nodes of Machines that have one are left to its controller. Never ends the pass.
 */
export const orphanedMarks = (deps: Pick<Collaborators, 'owners' | 'machines'>): MachineStep => ({
  name: 'orphaned-marks',

  async run(ctx) {
    const { machine, observed, nodes, signal, log, pass } = ctx;
    const cached = namedNode(ctx, deps.machines);
    if (nodes === undefined || typeof cached !== 'object' || isBeingDeleted(cached)) return next;
    if (leftRolloutMarks(machine, cached) === undefined || !hasNoDeployment(observed, deps.owners)) return next;

    const live = await nodes.read(cached.metadata.name, signal);
    if (live === undefined || live.metadata.uid !== cached.metadata.uid) return next;
    const change = leftRolloutMarks(machine, live);
    if (change === undefined) return next;
    const { resourceVersion } = live.metadata;
    try {
      await nodes.patch(live, { ...change, metadata: { ...change.metadata, resourceVersion } }, signal);
      log.info({ node: live.metadata.name }, 'removed the marks of a rollout from a node');
    } catch (err) {
      if (!isDenial(err)) throw err;
      log.warn({ node: live.metadata.name, err }, 'could not remove the marks of a rollout from a node');
      pass.alsoAfter(REFUSED_RETRY_MS, 'the API server to accept a change of the Node');
    }
    return next;
  },
});
