import { capital } from '../../../apis/capital.ts';
import { phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { MACHINE_FINALIZER, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { controllerOf, isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { policyInForce, policySettingOf } from '../../machines/deletion-policy.ts';
import { deletionStageOf, textOfStage, type DeletionStage } from '../../machines/deletion-stage.ts';
import { describeHooks, hooksOf } from '../../machines/hooks.ts';
import { holdOf, type Hold, type HoldKind } from '../../machines/replacement-hold.ts';
import { describeConditions } from '../../machines/node-health.ts';
import { NODE_SYNC_REFUSED, refusedFor } from '../../machines/node-refusal.ts';
import { failedCallOf } from '../../machines/original-texts.ts';
import { hasMachineFinalizer } from '../../machines/status.ts';
import { explainInPlace } from './in-place.ts';
import { HEALTHY, type MachineExplanation, type Explanation } from './explanation.ts';
import { withMaintenance } from './maintenance.ts';
import { explainPreparation } from './preparation.ts';
import { withOutage } from './outage.ts';
import { withPreservation } from './preservation.ts';
import { withVMDeletion } from './vm-deletion.ts';

/**
 * Explains a Machine as it was read at `nowMs` (ms since the epoch). `outage`: what its owners say of a cluster that does not
 * answer, so that nothing is done.
 */
export function explain(machine: Machine, nowMs: number, outage?: string): MachineExplanation {
  const own = isBeingDeleted(machine)
    ? explainDeletion(machine)
    : (explainPreparation(machine) ??
      withMaintenance(
        machine,
        withPreservation(machine, nowMs, explainInPlace(machine) ?? withVMDeletion(machine, explainPhase(machine))),
      ));
  const told = withOutage(machine, outage, own);
  const since = sinceOf(machine);
  return { phase: phaseOf(machine), ...told, sinceMs: since === undefined ? undefined : Math.max(0, nowMs - since) };
}

function explainPhase(machine: Machine): Explanation {
  const phase = phaseOf(machine);
  switch (phase) {
    case '':
      return isFailure(machine) ? explainCannotStart(machine) : explainCreating(machine);
    case 'CrashLoopBackOff':
      return explainCrashLoop(machine);
    case 'Pending':
      return explainPending(machine);
    case 'Available':
      return explanation(
        'Available',
        `VM ${providerIDOf(machine)} exists.`,
        undefined,
        'Nothing: there is no Node to wait for.',
      );
    case 'Running':
      return explainRunning(machine);
    case 'Unknown':
      return explainUnknown(machine);
    case 'Failed':
      return explainFailed(machine);
    case 'Terminating':
      return explanation(
        'Terminating',
        'The machine is about to be deleted.',
        'the deletion to start',
        'Its Node is drained.',
      );
    default:
      return explanation(phase, descriptionOf(machine), undefined, 'Nothing.');
  }
}

function explainCreating(machine: Machine): Explanation {
  const description = descriptionOf(machine);
  const code = machine.status?.lastOperation?.errorCode;
  if (code === 'VMBeingCreated')
    return explanation('Creating', description, 'the provider to create the VM', 'The VM boots and joins as a Node.');
  if (code === 'VMBeingInitialized')
    return explanation('Initializing', description, 'the provider to initialize the VM', 'It joins as a Node.');
  return providerIDOf(machine) === ''
    ? explanation(
        'Creating',
        'Waiting for the provider to create the VM; the request may still be queued.',
        'the VM to be created',
        'The VM boots and joins as a Node.',
      )
    : explanation(
        'Initializing',
        `VM ${providerIDOf(machine)} is being initialized.`,
        'the VM to be initialized',
        'It joins as a Node.',
      );
}

function explainCannotStart(machine: Machine): Explanation {
  return explanation(
    'CannotCreate',
    descriptionOf(machine),
    'the MachineClass or its Secret to be corrected',
    'The VM is created as soon as they are corrected.',
  );
}

const ALLOWED = 'the API server to allow it';
const REPEATED = 'The attempt is retried.';

function explainCrashLoop(machine: Machine): Explanation {
  if (machine.status?.lastOperation?.state === 'Processing') return explainCreating(machine);
  const description = descriptionOf(machine);
  const code = machine.status?.lastOperation?.errorCode ?? '';
  if (code === 'PreparationFailed') {
    return explanation('PreparationFailed', description, ALLOWED, REPEATED);
  }
  if (code === 'RecordRefused' || code === 'FinalizerRefused') {
    // One that may have a VM is not given up without our finalizer: its deletion would leave the VM behind.
    const ends = code === 'FinalizerRefused' || hasMachineFinalizer(machine);
    const next = ends ? 'The attempt is retried; at the creation timeout the machine becomes Failed.' : REPEATED;
    return explanation('RecordRefused', description, ALLOWED, next);
  }
  const hasFailed = code === '' ? failedCallOf(machine.status?.lastOperation) === 'create' : code !== 'NeverAsked';
  return hasFailed ? explainCreateFailed(machine) : explainCannotStart(machine);
}

/** Codes that may end when the MachineClass or its Secret says something else. */
const CORRECTABLE: ReadonlySet<string> = new Set([
  'InvalidArgument',
  'NotFound',
  'PermissionDenied',
  'FailedPrecondition',
  'OutOfRange',
  'Unauthenticated',
]);
const AT_ONCE = ', and immediately when the MachineClass or its Secret is corrected';

function explainCreateFailed(machine: Machine): Explanation {
  const code = machine.status?.lastOperation?.errorCode;
  return explanation(
    code ?? 'CreateFailed',
    descriptionOf(machine),
    'the next retry',
    `The attempt is retried, with increasing delays${CORRECTABLE.has(code ?? '') ? AT_ONCE : ''}; at the creation timeout the machine becomes Failed.`,
  );
}

function explainPending(machine: Machine): Explanation {
  const conditions = machine.status?.conditions ?? [];
  const its = nodeOf(machine);
  if (conditions.length === 0) {
    return explanation(
      'WaitingForNode',
      `VM ${providerIDOf(machine)} exists, ${its} has not joined yet.`,
      `${its} to join`,
      'Its health is checked; if it does not join, the machine becomes Failed at the creation timeout.',
    );
  }
  const bad = conditions.filter(({ type, status }) => type === 'Ready' && status !== 'True');
  return bad.length > 0
    ? explanation(
        'NodeNotReady',
        `${capital(its)} has joined, ${describeConditions(bad)}.`,
        `${its} to become healthy`,
        'It becomes Running.',
      )
    : explanation(
        'NodeNotUsable',
        `${capital(its)} has joined and is not usable yet.`,
        'the Node conditions to become healthy, and taint node.gardener.cloud/critical-components-not-ready to be removed',
        'It becomes Running.',
      );
}

function explainRunning(machine: Machine): Explanation {
  const refused = refusedFor(machine);
  const healthy = `${capital(nodeOf(machine))} is healthy.`;
  return refused === undefined
    ? explanation('Running', healthy, undefined, HEALTHY)
    : explanation(
        NODE_SYNC_REFUSED,
        `${healthy} Changes to it are refused: ${refused}`,
        'the node template, or what refuses it, to be corrected',
        'The attempt is retried, with increasing delays, and immediately when the template is corrected.',
      );
}

function explainUnknown(machine: Machine): Explanation {
  const held = holdOf(machine);
  if (held !== undefined) return explainHeld(machine, held);
  return explanation(
    'Unhealthy',
    descriptionOf(machine) || `${capital(nodeOf(machine))} is not healthy.`,
    `${nodeOf(machine)} to become healthy`,
    machine.spec.disableHealthTimeout === true
      ? 'Nothing: the machine is kept, because disableHealthTimeout is set.'
      : 'At the health timeout it becomes Failed and is replaced.',
  );
}

/** Its health timeout has passed, but it is not its turn. */
function explainHeld(machine: Machine, { kind }: Hold): Explanation {
  const { reason, waitingFor, after = '' } = HELD[kind];
  const then = `It is replaced unless its Node becomes healthy first.${after}`;
  return explanation(reason, descriptionOf(machine), waitingFor, then);
}

const HELD: Readonly<Record<HoldKind, { reason: string; waitingFor: string; after?: string }>> = {
  zone: {
    reason: 'ZoneUnhealthy',
    waitingFor: 'more machines of its zone to be healthy',
    after: ' To replace it now, delete the Machine.',
  },
  stopped: { reason: 'ReplacementStopped', waitingFor: 'annotation machine.sapcloud.io/max-replacements to allow it' },
  pace: {
    reason: 'ReplacementPaced',
    waitingFor: 'its turn, one health timeout after the replacements before it',
    after: ' To replace it now, delete the Machine.',
  },
  limit: { reason: 'ReplacementDelayed', waitingFor: 'other replacements to finish' },
  grace: { reason: 'SafetyGrace', waitingFor: 'the grace period after a restart or outage to end' },
};

function explainFailed(machine: Machine): Explanation {
  const owner = controllerOf(machine);
  return owner === undefined
    ? explanation('Failed', descriptionOf(machine), undefined, 'Delete the Machine: it is not replaced automatically.')
    : explanation(
        'Failed',
        descriptionOf(machine),
        `${owner.kind} ${owner.name} to replace it`,
        'It is deleted, and replaced by a new one.',
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

function explainDeletion(machine: Machine): Explanation {
  const { finalizers = [] } = machine.metadata;
  if (finalizers.length > 0 && !finalizers.includes(MACHINE_FINALIZER)) return explainKeptByOthers(finalizers);
  const stage = deletionStageOf(machine);
  if (stage === undefined) {
    return explanation(
      'DeletionRequested',
      'Deletion was requested.',
      'the machine controller to start the deletion',
      'The Node is drained.',
    );
  }
  const drainHooks = stage === 'vm-status' || stage === 'drain' ? hooksOf(machine, 'deletion') : [];
  if (drainHooks.length > 0) return explainHooks(drainHooks, 'The Node is drained.');
  const hooks = stage === 'delete-vm' ? hooksOf(machine, 'termination') : [];
  if (hooks.length > 0) return explainHooks(hooks, 'The VM is deleted.');
  const { reason, failed, what } = STAGES[stage];
  const after = underPolicy(machine, stage) ?? STAGES[stage].after;
  const text = textOfStage(descriptionOf(machine));
  const message = text === '' ? `Waiting for ${what}.` : text;
  const code = machine.status?.lastOperation?.errorCode;
  if (code === 'RecordRefused')
    return explanation('RecordRefused', message, ALLOWED, `The attempt is retried. ${after}`);
  const now = code === 'DrainBlocked' ? code : isFailure(machine) ? failed : reason;
  const told = explanation(now, message, what, after);
  return withOutage(machine, code === 'ClusterOutage' ? text : undefined, told);
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

function explainHooks(hooks: readonly string[], nextStep: string): Explanation {
  return explanation(
    'WaitingForHooks',
    describeHooks(hooks),
    `annotations ${hooks.join(', ')} to be removed by their owners`,
    nextStep,
  );
}

function explainKeptByOthers(finalizers: readonly string[]): Explanation {
  const names = finalizers.join(', ');
  return explanation(
    'KeptByOthers',
    `Machinist has completed the deletion; finalizer ${names} keeps the object.`,
    `finalizer ${names} to be removed by its owner`,
    'The Machine is removed.',
  );
}

function explanation(reason: string, message: string, waitingFor: string | undefined, nextStep: string): Explanation {
  return { reason, message, waitingFor, nextStep };
}

function isFailure({ status }: Machine): boolean {
  return status?.lastOperation?.state === 'Failed';
}

function descriptionOf({ status }: Machine): string {
  return status?.lastOperation?.description ?? '';
}

function nodeOf({ metadata }: Machine): string {
  const { [NODE_LABEL]: name = '' } = metadata.labels ?? {};
  return name === '' ? 'its Node' : `Node ${name}`;
}

function sinceOf(machine: Machine): number | undefined {
  const { metadata, status } = machine;
  if (isBeingDeleted(machine)) return fromTimestamp(metadata.deletionTimestamp);
  return fromTimestamp(status?.currentStatus?.lastUpdateTime) ?? fromTimestamp(metadata.creationTimestamp);
}
