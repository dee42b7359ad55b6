import { describeBlockingOutages } from '../../../kube/gate/outage.ts';
import { next, requeue } from '../../../work/reconcile/result.ts';
import { codeInDeletion, setOperation } from '../../machine-facts/status.ts';
import { deletionStageOf, describeStage } from '../../machine-facts/deletion-stage.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { isForced } from './cursor.ts';

const OUTAGE = 'ClusterOutage';
const RECHECK_MS = 5_000;

/**
 * Holds a deletion during an outage of its target cluster, and says so: once, and no more when it is over. What runs goes on; a VM
 * that is being deleted is seen to its end, and to let go of the Machine takes the control cluster only.
 */
export const awaitTarget = (deps: Pick<Collaborators, 'clock' | 'activities' | 'outages'>): MachineStep => ({
  name: 'await-target',

  run(ctx) {
    const { machine, nodes } = ctx;
    const stage = deletionStageOf(machine);
    if (nodes === undefined || stage === undefined || isForced(ctx)) return next;

    const held = deps.outages().filter(({ cluster }) => cluster === nodes.cluster);
    if (held.length === 0) {
      if (machine.status.lastOperation?.errorCode === OUTAGE) {
        const told = { type: 'Delete', state: 'Processing', description: describeStage(stage) } as const;
        setOperation(machine, told, deps.clock.now());
      }
      return next;
    }
    if (stage === 'release-finalizer' || deps.activities.get(machine.metadata.uid, 'delete') !== undefined) return next;
    const description = describeStage(stage, describeBlockingOutages(held));
    const errorCode = codeInDeletion(machine, OUTAGE);
    const told = { type: 'Delete', state: 'Processing', errorCode, description } as const;
    setOperation(machine, told, deps.clock.now());
    return requeue(RECHECK_MS, 'the target cluster to be reachable');
  },
});
