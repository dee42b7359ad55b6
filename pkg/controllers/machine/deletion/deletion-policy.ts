import {
  DELETION_POLICY_ANNOTATION,
  DELETION_POLICY_IN_FORCE_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { next } from '../../../work/reconcile/result.ts';
import {
  requestedPolicy,
  policyInForce,
  skipsDrain,
  weaker,
  type DeletionPolicy,
} from '../../machine-facts/deletion-policy.ts';
import { deletionStageOf, hasReached } from '../../machine-facts/deletion-stage.ts';
import { deploymentOf } from '../../machine-facts/owners.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';

type Deps = Pick<Collaborators, 'owners' | 'drains' | 'reportedOnce' | 'cursor'>;

/**
 * Finds out by which policy the machine is deleted, and records it, so that it holds when its MachineDeployment is gone. It is only ever
 * weakened, and then at once: one that asks for no drain ends the drain that runs.
 */
export const deletionPolicy = (deps: Deps): MachineStep => ({
  name: 'deletion-policy',

  run(ctx) {
    const { machine, pass } = ctx;
    const asked = requestedPolicy(machine, deploymentOf(machine, deps.owners));
    const recorded = policyInForce(machine);
    const policy = weaker(recorded, asked);
    reportKept(deps, ctx, asked, policy);
    if (policy === undefined) return next;

    const annotations = { ...machine.metadata.annotations, [DELETION_POLICY_IN_FORCE_ANNOTATION]: policy };
    machine.metadata.annotations = annotations;
    if (skipsDrain(policy) && !hasReached(deletionStageOf(machine), 'delete-vm')) {
      pass.afterWrite(() => deps.drains.end(ctx));
      deps.cursor.advance(ctx, 'delete-vm', `Not draining the Node: the deletion policy is ${policy}.`);
    }
    return next;
  },
});

/** Once. */
function reportKept(
  { reportedOnce }: Deps,
  { machine, pass }: MachineContext,
  asked: DeletionPolicy | undefined,
  policy: DeletionPolicy | undefined,
): void {
  const { uid } = machine.metadata;
  if (asked === undefined || asked === policy) return;
  if (!reportedOnce.isNew(uid, `DeletionPolicyKept ${asked} ${policy ?? ''}`)) return;
  pass.event(
    'DeletionPolicyKept',
    `Annotation ${DELETION_POLICY_ANNOTATION} is now ${asked}, but the machine is already being deleted with policy ${policy ?? ''}, ` +
      'which cannot be undone.',
  );
}
