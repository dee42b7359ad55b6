import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf } from '../../apis/meta.ts';
import type { ObjectEvents } from '../../kube/events/event-sink.ts';
import type { NodeGroup } from '../groups.ts';
import type { Membership, NodeIdentifier } from '../membership.ts';
import { MOST_PLACES } from '../instances.ts';
import type { Places } from '../places.ts';
import type { RpcCall } from '../rpcs.ts';
import type { RunningChanges } from '../running-changes.ts';
import { deletionOf } from './delete-nodes.ts';
import { decideDecrease, decideIncrease } from './resize.ts';
import { describeMutated, isRefusal, type Mutated } from './decision.ts';
import { GroupWrites, type Wish, type WriteDeps } from './write.ts';
import { ServerError, Status } from '../rpc-error.ts';
import type { ObjectEvent } from '../../controllers/replicas/events.ts';
import { ApiError, isTooManyRequests, mayHaveHappened } from '../../kube/client/errors.ts';

export interface MutationDeps extends WriteDeps {
  readonly membership: Membership;
  readonly recorder: ObjectEvents<MachineDeployment>;
  readonly places: Places;
  /** Each is one of these, from its beginning to its end. */
  readonly changes: RunningChanges;
}

export type Mutations = ReturnType<typeof mutations>;

/**
 * What an autoscaler may change. Each is one write or none, and resolves when it is visible to readers of the caches. Refusals are ServerErrors of nice-grpc,
 * with a message that says what to do, and nothing was written; whatever else is thrown is answered as UNAVAILABLE or INTERNAL.
 */
export function mutations(deps: MutationDeps) {
  const { changes, membership, places } = deps;
  const writes = new GroupWrites(deps);
  return {
    /** `delta` is greater than 0. */
    increase(group: NodeGroup, delta: number, call: RpcCall): Promise<Mutated> {
      const decide: Wish['decide'] = (state) => decideIncrease(state, group, delta);
      return changes.run(() => writes.carryOut({ group, decide, isRepeatable: false }, call));
    },
    delete(group: NodeGroup, nodes: readonly NodeIdentifier[], call: RpcCall): Promise<Mutated> {
      let last: { readonly uid: string; readonly places: readonly string[] } | undefined;
      const decide: Wish['decide'] = (state) => {
        const { uid } = state.deployment.metadata;
        const known = places.see(uid, Math.min(state.missing, MOST_PLACES));
        const decision = deletionOf(membership, state, group, nodes, known);
        last = isRefusal(decision) ? undefined : { uid, places: decision.places };
        // Before it is written: nobody may ever know whether it was.
        if (last !== undefined) places.ask(uid, last.places);
        return decision;
      };
      return changes.run(async () => {
        const mutated = await told(deps, writes, { group, decide, isRepeatable: true }, call);
        if (last !== undefined) places.take(last.uid, last.places);
        return mutated;
      });
    },
    /** `delta` is less than 0. */
    decrease(group: NodeGroup, delta: number, call: RpcCall): Promise<Mutated> {
      const decide: Wish['decide'] = (state) => decideDecrease(state, group, delta);
      return changes.run(() => told(deps, writes, { group, decide, isRepeatable: false }, call));
    },
  };
}

/** Events say what became of it. */
async function told(
  { machineDeployments, recorder }: MutationDeps,
  writes: GroupWrites,
  wish: Wish,
  call: RpcCall,
): Promise<Mutated> {
  const deployment = machineDeployments.get(keyOf({ metadata: wish.group }));
  try {
    const mutated = await writes.carryOut(wish, call);
    if (deployment !== undefined && mutated.after !== mutated.before) {
      recorder.event(scaleDownAccepted(deployment, call.peer, mutated));
    }
    return mutated;
  } catch (err) {
    const why = whyRefused(err);
    if (deployment !== undefined && why !== undefined) recorder.event(scaleDownRefused(deployment, call.peer, why));
    throw err;
  }
}

const REFUSALS: ReadonlySet<Status> = new Set([Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION]);

/** An autoscaler made a group smaller; `peer` says which. */
function scaleDownAccepted(object: MachineDeployment, peer: string, mutated: Mutated): ObjectEvent<MachineDeployment> {
  const message = `Autoscaler ${peer} scaled down: ${describeMutated(mutated)}`;
  return { object, type: 'Normal', reason: 'ScaleDownAccepted', message };
}

/** An autoscaler wanted to make a group smaller, and nothing was changed. */
function scaleDownRefused(object: MachineDeployment, peer: string, why: string): ObjectEvent<MachineDeployment> {
  return {
    object,
    type: 'Warning',
    reason: 'ScaleDownRefused',
    message: `Refused to scale down for autoscaler ${peer}: ${why}`,
  };
}

/** Why it was refused: for what was asked, or by the API server or a webhook of it; undefined when only an answer is wanting. */
function whyRefused(err: unknown): string | undefined {
  if (err instanceof ServerError) return REFUSALS.has(err.code) ? err.details : undefined;
  const message = err instanceof ApiError ? err.message : undefined;
  return mayHaveHappened(err) || isTooManyRequests(err) ? undefined : message;
}
