import { isNotFound, ApiError } from '../../../kube/errors.ts';
import { nodes } from '../../../kube/resource.ts';
import { next, type StepResult } from '../../../reconcile/result.ts';
import { NODE_DELETION_TIMEOUT_SECONDS } from '../defaults.ts';
import { targetOf, type MachineStep, type StepDeps } from '../machine-pass.ts';
import { isOver, messageOf, OF_NODE, waits } from './waits.ts';

/** Deletes the Node, and gives up after its timeout. */
export function nodeRemoval({ clock }: Pick<StepDeps, 'clock'>): MachineStep {
  return {
    name: 'node-removal',
    async run(pass): Promise<StepResult> {
      const { machine, signal } = pass;
      const target = targetOf(pass);
      if (pass.node.kind !== 'found' || target === undefined) return next;
      const { name, uid } = pass.node.node.metadata;
      try {
        await target.writer.delete('destroy', nodes, { name }, { uid }, { signal });
        return next;
      } catch (err) {
        if (isNotFound(err)) return next;
        const seconds = machine.spec.deletion?.nodeDeletionTimeoutSeconds ?? NODE_DELETION_TIMEOUT_SECONDS;
        if (err instanceof ApiError && isOver(machine.metadata.deletionTimestamp, seconds, clock.now())) return next;
        waits(pass, OF_NODE, `Deleting Node ${name}: ${messageOf(err)}`);
        throw err;
      }
    },
  };
}
