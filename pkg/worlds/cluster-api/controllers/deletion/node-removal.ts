import { messageOf } from '../../../../driver/errno.ts';
import { ApiError, isNotFound } from '../../../../kube/client/errors.ts';
import { nodes } from '../../../../kube/client/resource.ts';
import { next, type StepResult } from '../../../../work/reconcile/result.ts';
import { NODE_DELETION_TIMEOUT_SECONDS } from '../defaults.ts';
import { targetOf, type MachinePass, type ClusterAPIMachineStep, type StepDeps } from '../machine-pass.ts';
import { isOver, OF_NODE, waits } from './waits.ts';

/** A Node that cannot be deleted is tried for so long at least: the drain may have used up the time. */
const LEAST_MS = 10_000;
const TRY_AGAIN_MS = 2_000;

/** Deletes the Node, and gives up after its timeout, in which the rest of the deletion counts too. */
export function nodeRemoval({ clock }: Pick<StepDeps, 'clock'>): ClusterAPIMachineStep {
  /** Since when (monotonic) it has been tried in vain, by the UID of the Machine. */
  const tried = new Map<string, number>();
  const goOn = ({ machine, notes }: MachinePass, name: string, why: string): StepResult => {
    tried.delete(machine.metadata.uid);
    const message = `Node ${name} could not be deleted and is kept: ${why}`;
    notes.record({ type: 'Warning', reason: 'FailedDeleteNode', message });
    return next;
  };
  const isInVain = ({ machine: { metadata, spec } }: MachinePass): boolean => {
    const seconds = spec.deletion?.nodeDeletionTimeoutSeconds ?? NODE_DELETION_TIMEOUT_SECONDS;
    const sinceMs = tried.get(metadata.uid) ?? clock.monotonicMs();
    tried.set(metadata.uid, sinceMs);
    return isOver(metadata.deletionTimestamp, seconds, clock.now()) && clock.monotonicMs() - sinceMs >= LEAST_MS;
  };
  return {
    name: 'node-removal',
    async run(pass): Promise<StepResult> {
      const { machine, node, signal } = pass;
      const target = targetOf(pass);
      if (node.kind === 'unreachable' && machine.status.nodeRef !== undefined) {
        const { name } = machine.status.nodeRef;
        if (isInVain(pass)) return goOn(pass, name, node.why);
        return waits(pass, OF_NODE, `Deleting Node ${name}: ${node.why}`, { againMs: TRY_AGAIN_MS });
      }
      if (node.kind !== 'found' || target === undefined) return next;
      const { name, uid } = node.node.metadata;
      try {
        await target.writer.delete('destroy', nodes, { name }, { uid }, { signal });
        tried.delete(machine.metadata.uid);
        return next;
      } catch (err) {
        if (isNotFound(err)) {
          tried.delete(machine.metadata.uid);
          return next;
        }
        if (err instanceof ApiError && isInVain(pass)) return goOn(pass, name, messageOf(err));
        waits(pass, OF_NODE, `Deleting Node ${name}: ${messageOf(err)}`);
        throw err;
      }
    },
  };
}
