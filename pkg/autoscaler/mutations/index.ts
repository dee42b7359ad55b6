import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf } from '../../apis/meta.ts';
import type { ObjectEvents } from '../../kube/events/event-sink.ts';
import type { Membership } from '../membership.ts';
import type { Mutated, MutationCall, Mutations } from '../mutations.ts';
import { MOST_PLACES } from '../instances.ts';
import type { Places } from '../places.ts';
import { deletionTargetOf } from './deletion-target.ts';
import { decideDecrease } from './decrease.ts';
import { isRefusal } from './decision.ts';
import { decideDeletion } from './delete-nodes.ts';
import { scaleDownAccepted, scaleDownRefused, whyRefused } from './events.ts';
import { missingIn } from './group-state.ts';
import { decideIncrease } from './increase.ts';
import { GroupWrites, type Wish, type WriteDeps } from './write.ts';

export interface MutationDeps extends WriteDeps {
  readonly membership: Membership;
  readonly recorder: ObjectEvents<MachineDeployment>;
  readonly places: Places;
}

export function mutations(deps: MutationDeps): Mutations {
  const writes = new GroupWrites(deps);
  return {
    increase(group, delta, call) {
      return writes.carryOut(
        { group, decide: (state) => decideIncrease(state, group, delta), isRepeatable: false },
        call,
      );
    },
    async delete(group, nodes, call) {
      const { membership, places } = deps;
      let last: { readonly uid: string; readonly places: readonly string[] } | undefined;
      const decide: Wish['decide'] = (state) => {
        const { uid } = state.deployment.metadata;
        const known = places.see(uid, Math.min(missingIn(state), MOST_PLACES));
        const asked = nodes.map((node) => deletionTargetOf(membership, state.deployment, node, known));
        const decision = decideDeletion(state, group, asked);
        last = isRefusal(decision) ? undefined : { uid, places: decision.places };
        // Before it is written: nobody may ever know whether it was.
        if (last !== undefined) places.ask(uid, last.places);
        return decision;
      };
      const mutated = await told(deps, writes, { group, decide, isRepeatable: true }, call);
      if (last !== undefined) places.take(last.uid, last.places);
      return mutated;
    },
    decrease(group, delta, call) {
      return told(
        deps,
        writes,
        { group, decide: (state) => decideDecrease(state, group, delta), isRepeatable: false },
        call,
      );
    },
  };
}

/** Events say what became of it. */
async function told(
  { machineDeployments, recorder }: MutationDeps,
  writes: GroupWrites,
  wish: Wish,
  call: MutationCall,
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
