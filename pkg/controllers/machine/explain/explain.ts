import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { MACHINE_FINALIZER, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { controllerOf, isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { deletionStageOf, textOfStage, type DeletionStage } from '../../machines/deletion-stage.ts';
import { holdOf, type Hold, type HoldKind } from '../../machines/hold.ts';
import { describeConditions } from '../../machines/node-health.ts';
import { CREATE_FAILED } from '../../machines/status-texts.ts';
import { NODE_SYNC_REFUSED, refusedFor } from '../../machines/node-refusal.ts';
import { inPlaceStory } from './in-place.ts';
import { HEALTHY, type Explanation, type Story } from './explanation.ts';
import { withOutage } from './outage.ts';
import { withPreservation } from './preservation.ts';

/**
 * Explains a Machine as it was read at `nowMs` (ms since the epoch). `outage`: what its owners say of a cluster that does not
 * answer, so that nothing is done.
 */
export function explain(machine: Machine, nowMs: number, outage?: string): Explanation {
  const own = isBeingDeleted(machine)
    ? deletionStory(machine)
    : withPreservation(machine, nowMs, inPlaceStory(machine) ?? lifeStory(machine));
  const told = withOutage(machine, outage, own);
  const since = sinceOf(machine);
  return { phase: phaseOf(machine), ...told, sinceMs: since === undefined ? undefined : Math.max(0, nowMs - since) };
}

function lifeStory(machine: Machine): Story {
  const phase = phaseOf(machine);
  switch (phase) {
    case '':
      return isFailure(machine) ? cannotStartStory(machine) : creatingStory(machine);
    case 'CrashLoopBackOff':
      return crashStory(machine);
    case 'Pending':
      return pendingStory(machine);
    case 'Available':
      return story('Available', `VM ${vmOf(machine)} exists.`, undefined, 'Nothing: there is no Node to wait for.');
    case 'Running':
      return runningStory(machine);
    case 'Unknown':
      return unknownStory(machine);
    case 'Failed':
      return failedStory(machine);
    case 'Terminating':
      return story('Terminating', 'The machine is about to be deleted.', 'its deletion', 'Its Node is drained.');
    default:
      return story(phase, descriptionOf(machine), undefined, 'Nothing.');
  }
}

function creatingStory({ spec }: Machine): Story {
  return (spec?.providerID ?? '') === ''
    ? story('Creating', 'The provider makes the VM.', 'the VM to be created', 'The VM boots and joins as a Node.')
    : story(
        'Initializing',
        `VM ${spec?.providerID ?? ''} is set up.`,
        'the VM to be initialized',
        'It joins as a Node.',
      );
}

function cannotStartStory(machine: Machine): Story {
  return story(
    'CannotCreate',
    descriptionOf(machine),
    'the MachineClass or its Secret to be corrected',
    'The VM is created as soon as they are right.',
  );
}

const ALLOWED = 'the API server to allow it';
const REPEATED = 'The attempt is repeated.';

function crashStory(machine: Machine): Story {
  if (machine.status?.lastOperation?.state === 'Processing') return creatingStory(machine);
  const description = descriptionOf(machine);
  const code = machine.status?.lastOperation?.errorCode ?? '';
  if (code === 'PreparationFailed') {
    return story('PreparationFailed', description, ALLOWED, REPEATED);
  }
  if (code === 'RecordRefused' || code === 'FinalizerRefused') {
    // One that may have a VM is not given up without our finalizer: its deletion would leave the VM behind.
    const ends = code === 'FinalizerRefused' || machine.metadata.finalizers?.includes(MACHINE_FINALIZER) === true;
    const next = ends ? 'The attempt is repeated; at the creation timeout the machine becomes Failed.' : REPEATED;
    return story('RecordRefused', description, ALLOWED, next);
  }
  const hasFailed = code === '' ? description.startsWith(CREATE_FAILED) : code !== 'NeverAsked';
  return hasFailed ? createFailedStory(machine) : cannotStartStory(machine);
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
const AT_ONCE = ', and at once when the MachineClass or its Secret is corrected';

function createFailedStory(machine: Machine): Story {
  const code = machine.status?.lastOperation?.errorCode;
  return story(
    code ?? 'CreateFailed',
    descriptionOf(machine),
    'the next attempt',
    `The attempt is repeated, each time later${CORRECTABLE.has(code ?? '') ? AT_ONCE : ''}; at the creation timeout the machine becomes Failed.`,
  );
}

function pendingStory(machine: Machine): Story {
  const conditions = machine.status?.conditions ?? [];
  const its = nodeOf(machine);
  if (conditions.length === 0) {
    return story(
      'WaitingForNode',
      `VM ${vmOf(machine)} exists, ${its} has not joined yet.`,
      `${its} to join`,
      'Its health is checked; without it the machine becomes Failed at the creation timeout.',
    );
  }
  const bad = conditions.filter(({ type, status }) => type === 'Ready' && status !== 'True');
  return bad.length > 0
    ? story(
        'NodeNotReady',
        `${capital(its)} has joined, ${describeConditions(bad)}.`,
        `${its} to become healthy`,
        'It becomes Running.',
      )
    : story(
        'NodeNotUsable',
        `${capital(its)} has joined and is not usable yet.`,
        'its conditions, and taint node.gardener.cloud/critical-components-not-ready to go',
        'It becomes Running.',
      );
}

function runningStory(machine: Machine): Story {
  const refused = refusedFor(machine);
  const healthy = `${capital(nodeOf(machine))} is healthy.`;
  return refused === undefined
    ? story('Running', healthy, undefined, HEALTHY)
    : story(
        NODE_SYNC_REFUSED,
        `${healthy} The API server refuses for it: ${refused}`,
        'the node template, or what refuses it, to be corrected',
        'The attempt is repeated, each time later, and at once when the template is corrected.',
      );
}

function unknownStory(machine: Machine): Story {
  const held = holdOf(machine);
  if (held !== undefined) return heldStory(machine, held);
  return story(
    'Unhealthy',
    descriptionOf(machine) || `${capital(nodeOf(machine))} is not healthy.`,
    `${nodeOf(machine)} to become healthy`,
    machine.spec.disableHealthTimeout === true
      ? 'Nothing: disableHealthTimeout keeps it.'
      : 'At the health timeout it becomes Failed and is replaced.',
  );
}

/** Its health timeout has passed, but it is not its turn. */
function heldStory(machine: Machine, { kind }: Hold): Story {
  const { reason, waitingFor, after = '' } = HELD_STORIES[kind];
  const then = `Unless its Node becomes healthy before, it is replaced.${after}`;
  return story(reason, descriptionOf(machine), waitingFor, then);
}

const HELD_STORIES: Readonly<Record<HoldKind, { reason: string; waitingFor: string; after?: string }>> = {
  zone: {
    reason: 'ZoneUnhealthy',
    waitingFor: 'more machines of its zone to be healthy',
    after: ' To have it replaced now, delete the Machine.',
  },
  stopped: { reason: 'ReplacementStopped', waitingFor: 'annotation machine.sapcloud.io/max-replacements to allow it' },
  pace: {
    reason: 'ReplacementPaced',
    waitingFor: 'its turn, one health timeout after those before it',
    after: ' To have it replaced now, delete the Machine.',
  },
  limit: { reason: 'ReplacementDelayed', waitingFor: 'other replacements to end' },
  grace: { reason: 'SafetyGrace', waitingFor: 'its Node to be watched for long enough' },
};

function failedStory(machine: Machine): Story {
  const owner = controllerOf(machine);
  return owner === undefined
    ? story('Failed', descriptionOf(machine), undefined, 'Delete the Machine: nothing replaces it by itself.')
    : story(
        'Failed',
        descriptionOf(machine),
        `${owner.kind} ${owner.name}`,
        'It is deleted, and replaced by a new one.',
      );
}

const DELETION_STORIES: Record<DeletionStage, { reason: string; failed: string; what: string; after: string }> = {
  'vm-status': {
    reason: 'LocatingVM',
    failed: 'LocatingVMFailed',
    what: 'the provider to tell of the VM',
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
    what: 'the volumes to be let go',
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
    after: 'The Machine is gone.',
  },
  'release-finalizer': {
    reason: 'Releasing',
    failed: 'Releasing',
    what: 'the finalizer to be removed',
    after: 'The Machine is gone.',
  },
};

function deletionStory(machine: Machine): Story {
  const { finalizers = [] } = machine.metadata;
  if (finalizers.length > 0 && !finalizers.includes(MACHINE_FINALIZER)) return keptByOthersStory(finalizers);
  const stage = deletionStageOf(machine);
  if (stage === undefined) {
    return story('DeletionRequested', 'Deletion was asked for.', 'the machine controller', 'The Node is drained.');
  }
  const { reason, failed, what, after } = DELETION_STORIES[stage];
  const text = textOfStage(descriptionOf(machine));
  const message = text === '' ? `Waiting for ${what}.` : text;
  const code = machine.status?.lastOperation?.errorCode;
  if (code === 'RecordRefused') return story('RecordRefused', message, ALLOWED, `The attempt is repeated. ${after}`);
  const told = story(isFailure(machine) ? failed : reason, message, what, after);
  const isHeldUp = code === 'ClusterOutage';
  return withOutage(machine, isHeldUp ? text : undefined, told);
}

function keptByOthersStory(finalizers: readonly string[]): Story {
  const names = finalizers.join(', ');
  return story(
    'KeptByOthers',
    `Nothing is left to do here, the object is kept by finalizer ${names}.`,
    `finalizer ${names} to be removed by whoever put it there`,
    'The Machine is gone.',
  );
}

function story(reason: string, message: string, waitingFor: string | undefined, nextStep: string): Story {
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

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function vmOf({ spec }: Machine): string {
  return spec?.providerID ?? '';
}

function sinceOf(machine: Machine): number | undefined {
  const { metadata, status } = machine;
  if (isBeingDeleted(machine)) return fromTimestamp(metadata.deletionTimestamp);
  return fromTimestamp(status?.currentStatus?.lastUpdateTime) ?? fromTimestamp(metadata.creationTimestamp);
}
