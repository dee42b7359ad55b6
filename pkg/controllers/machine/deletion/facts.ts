import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { policyInForce, policySettingOf } from '../../machine-facts/deletion-policy.ts';
import { deletionStageOf, hasReached, textOfStage, type DeletionStage } from '../../machine-facts/deletion-stage.ts';
import { describeHooks, hooksOf } from '../../machine-facts/hooks.ts';
import { hasRecordedVM } from '../../machine-facts/node-owner.ts';
import { wasNeverRequested } from '../../machine-facts/status.ts';
import { descriptionOf, explanation, fact, inPhase, isFailure, type Explanation, type Fact } from '../explanation.ts';
import { withOutage } from '../outage-fact.ts';

/** Facts of Machines that are being deleted. */
export const DELETION: readonly Fact[] = [
  ofDeletion(explainKeptByOthers),
  ofDeletion(explainHooks),
  ofDeletion((machine, stage) =>
    stage === undefined
      ? explanation(
          'DeletionRequested',
          'Deletion was requested.',
          'the machine controller to start the deletion',
          'The Node is drained.',
        )
      : explainStage(machine, stage),
  ),
];

/** One whose deletion was begun by the original. */
export const TERMINATING: Fact = inPhase('Terminating', () =>
  explanation('Terminating', 'The machine is about to be deleted.', 'the deletion to start', 'Its Node is drained.'),
);

function ofDeletion(of: (machine: Machine, stage: DeletionStage | undefined) => Explanation | undefined): Fact {
  return fact((machine) => (isBeingDeleted(machine) ? of(machine, deletionStageOf(machine)) : undefined));
}

function explainKeptByOthers(machine: Machine, stage: DeletionStage | undefined): Explanation | undefined {
  const { finalizers = [] } = machine.metadata;
  if (finalizers.length === 0 || finalizers.includes(MACHINE_FINALIZER)) return undefined;
  const names = finalizers.join(', ');
  const isLeft = !hasReached(stage, 'delete-node') && !wasNeverRequested(machine) && hasRecordedVM(machine);
  const providerID = providerIDOf(machine);
  return explanation(
    'KeptByOthers',
    isLeft
      ? `The finalizer of Machinist was removed before ${providerID === '' ? 'the VM' : `VM ${providerID}`} was deleted; finalizer ${names} keeps the object.`
      : `Machinist has completed the deletion; finalizer ${names} keeps the object.`,
    `finalizer ${names} to be removed by its owner`,
    isLeft ? 'The Machine is removed; then its VM is deleted as an orphan.' : 'The Machine is removed.',
  );
}

function explainHooks(machine: Machine, stage: DeletionStage | undefined): Explanation | undefined {
  const isBeforeDrain = stage === 'vm-status' || stage === 'drain';
  if (!isBeforeDrain && stage !== 'delete-vm') return undefined;
  const hooks = hooksOf(machine, isBeforeDrain ? 'deletion' : 'termination');
  if (hooks.length === 0) return undefined;
  return explanation(
    'WaitingForHooks',
    describeHooks(hooks),
    `annotations ${hooks.join(', ')} to be removed by their owners`,
    isBeforeDrain ? 'The Node is drained.' : 'The VM is deleted.',
  );
}

const STAGES: Record<DeletionStage, { reason: string; failed: string; what: string; after: string }> = {
  'vm-status': {
    reason: 'LocatingVM',
    failed: 'LocatingVMFailed',
    what: 'the provider to return the VM',
    after: 'The Node is drained.',
  },
  drain: {
    reason: 'Draining',
    failed: 'DrainFailed',
    what: 'the pods to leave',
    after: 'The VM is deleted; after the drain timeout pods are deleted too.',
  },
  'detach-volumes': {
    reason: 'DetachingVolumes',
    failed: 'DetachFailed',
    what: 'the volumes to be detached',
    after: 'The VM is deleted.',
  },
  'delete-vm': {
    reason: 'DeletingVM',
    failed: 'VMDeletionFailed',
    what: 'the provider to delete the VM',
    after: 'The Node object is deleted.',
  },
  'delete-node': {
    reason: 'DeletingNode',
    failed: 'NodeDeletionFailed',
    what: 'the Node object to be deleted',
    after: 'The Machine is removed.',
  },
  'release-finalizer': {
    reason: 'Releasing',
    failed: 'Releasing',
    what: 'the finalizer to be removed',
    after: 'The Machine is removed.',
  },
};

function explainStage(machine: Machine, stage: DeletionStage): Explanation {
  const { reason, failed, what } = STAGES[stage];
  const after = underPolicy(machine, stage) ?? STAGES[stage].after;
  const text = textOfStage(descriptionOf(machine));
  const message = text === '' ? `Waiting for ${what}.` : text;
  const code = machine.status?.lastOperation?.errorCode;
  if (code === 'RecordRefused')
    return explanation('RecordRefused', message, 'the API server to allow it', `The attempt is retried. ${after}`);
  const now = code === 'DrainBlocked' ? code : isFailure(machine) ? failed : reason;
  return withOutage(machine, code === 'ClusterOutage' ? text : undefined, explanation(now, message, what, after));
}

/** What follows where a deletion policy says something else. */
function underPolicy(machine: Machine, stage: DeletionStage): string | undefined {
  const policy = policyInForce(machine);
  if (stage === 'drain' && policy === 'graceful')
    return `The VM is deleted. Policy graceful never deletes pods, however long the drain takes; to continue without waiting for them, set ${policySettingOf(machine)} to unsafe or forced.`;
  if (stage !== 'delete-vm') return undefined;
  if (policy === 'forced')
    return 'The Node object is deleted; after --forced-deletion-timeout the Machine is removed anyway.';
  return policy === 'unsafe'
    ? `The Node object is deleted. To remove the Machine even if the provider does not delete the VM, set ${policySettingOf(machine)} to forced.`
    : undefined;
}
