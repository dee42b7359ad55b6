import { hasForceDeletionLabel } from '../../../apis/machine/v1alpha1/defaults.ts';
import { describeBlockingOutages } from '../../../kube/gate/outage.ts';
import { next, requeue } from '../../../work/reconcile/result.ts';
import { codeInDeletion, setOperation } from '../../machine-facts/status.ts';
import { deletionStageOf, describeStage } from '../../machine-facts/deletion-stage.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';

const OUTAGE = 'ClusterOutage';
const RECHECK_MS = 5_000;

/**
 * Holds a deletion during an outage of its target cluster, and says so: once, and no more when it is over. What runs goes on; a VM
 * that is being deleted is seen to its end, and to let go of the Machine takes the control cluster only. That the driver finds no VM is
 * believed after a look at the Node: it is asked again once that can be had.
 */
export const awaitTarget = (deps: Pick<Collaborators, 'clock' | 'activities' | 'outages'>): MachineStep => ({
  name: 'await-target',

  run(ctx) {
    const { machine, nodes } = ctx;
    const stage = deletionStageOf(machine);
    if (nodes === undefined || stage === undefined || hasForceDeletionLabel(ctx.machine)) return next;

    const held = deps.outages().filter(({ cluster }) => cluster === nodes.cluster);
    if (held.length === 0) {
      if (machine.status.lastOperation?.errorCode === OUTAGE) {
        const told = { type: 'Delete', state: 'Processing', description: describeStage(stage) } as const;
        setOperation(machine, told, deps.clock.now());
      }
      return next;
    }
    const { uid } = machine.metadata;
    const call = deps.activities.get(uid, 'delete');
    const isUnproved = call?.state === 'done' && !call.result.wasFound && call.result.isAnothers !== true;
    if (stage === 'release-finalizer' || (call !== undefined && !isUnproved)) return next;
    deps.activities.forget(uid, 'delete');
    const description = describeStage(stage, describeBlockingOutages(held));
    const errorCode = codeInDeletion(machine, OUTAGE);
    const told = { type: 'Delete', state: 'Processing', errorCode, description } as const;
    setOperation(machine, told, deps.clock.now());
    return requeue(RECHECK_MS, 'the target cluster to be reachable');
  },
});
