import { capital } from '../../../apis/capital.ts';
import { phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isVMRefused } from '../../machine-facts/joining.ts';
import { describeConditions, SETUP_TAINTS } from '../../machine-facts/node-health.ts';
import { failedCallOf } from '../../machine-facts/original-texts.ts';
import { holdOf } from '../../machine-facts/replacement-hold.ts';
import { hasMachineFinalizer } from '../../machine-facts/status.ts';
import {
  descriptionOf,
  explanation,
  fact,
  inPhase,
  isFailure,
  nodeTextOf,
  type Explanation,
  type Fact,
} from '../explanation.ts';

/** Facts of machines that have no VM yet, or no Node. */
export const CREATION: readonly Fact[] = [
  fact((machine) => (waitsForName(machine) ? explainTakenName(machine) : undefined)),
  inPhase('', (machine) => (isFailure(machine) ? explainCannotStart(machine) : explainCreating(machine))),
  inPhase('CrashLoopBackOff', explainCrashLoop),
  inPhase('Pending', explainPending),
  inPhase('Available', (machine) =>
    explanation(
      'Available',
      `VM ${providerIDOf(machine)} exists.`,
      undefined,
      'Nothing: there is no Node to wait for.',
    ),
  ),
];

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

function waitsForName(machine: Machine): boolean {
  const isBefore = phaseOf(machine) === '' || phaseOf(machine) === 'CrashLoopBackOff';
  return isBefore && machine.status?.lastOperation?.errorCode === 'NameTaken';
}

function explainTakenName(machine: Machine): Explanation {
  return explanation(
    'NameTaken',
    descriptionOf(machine),
    'one of the two Machines to be deleted',
    'The VM is created when the name is free; at the creation timeout the machine becomes Failed.',
  );
}

const IN_TURN =
  'it is replaced only in its turn, as annotation machine.sapcloud.io/max-replacements of its MachineDeployment allows.';
const ALLOWED = 'the API server to allow it';
const REPEATED = 'The attempt is retried.';

function explainCrashLoop(machine: Machine): Explanation {
  const { lastOperation } = machine.status ?? {};
  if (lastOperation?.state === 'Processing') return explainCreating(machine);
  if (isVMRefused(machine) && providerIDOf(machine) === '')
    return explainRefusal(machine, hasMachineFinalizer(machine));
  switch (lastOperation?.errorCode ?? '') {
    case 'PreparationFailed':
      return explanation('PreparationFailed', descriptionOf(machine), ALLOWED, REPEATED);
    case 'FinalizerRefused':
      return explainRefusal(machine, true);
    case 'RecordRefused':
      // One that may have a VM is not given up without our finalizer: its deletion would leave the VM behind.
      return explainRefusal(machine, hasMachineFinalizer(machine));
    case 'NeverAsked':
      return explainCannotStart(machine);
    case 'VMBeingInitialized':
      return explanation(
        'NotInitialized',
        `VM ${providerIDOf(machine)} is not initialized yet. ${descriptionOf(machine)}`,
        'this to be corrected, or to pass',
        'The VM is initialized, and joins as a Node.',
      );
    case '':
      return failedCallOf(lastOperation) === 'create' ? explainCreateFailed(machine) : explainCannotStart(machine);
    default:
      return explainCreateFailed(machine);
  }
}

function explainRefusal(machine: Machine, ends: boolean): Explanation {
  const next = ends ? 'The attempt is retried; at the creation timeout the machine becomes Failed.' : REPEATED;
  return explanation('RecordRefused', descriptionOf(machine), ALLOWED, next);
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
  const hasJoined = (machine.status?.conditions ?? []).length > 0;
  return explanation(
    code ?? 'CreateFailed',
    descriptionOf(machine),
    'the next retry',
    `The attempt is retried, with increasing delays${CORRECTABLE.has(code ?? '') ? AT_ONCE : ''}; ${hasJoined ? `past the creation timeout, ${IN_TURN}` : 'at the creation timeout the machine becomes Failed.'}`,
  );
}

function explainPending(machine: Machine): Explanation {
  const conditions = machine.status?.conditions ?? [];
  const its = nodeTextOf(machine);
  if (machine.status?.lastOperation?.errorCode === 'NodeUnidentified')
    return explanation(
      'NodeUnidentified',
      descriptionOf(machine),
      `${its} to show the provider ID of the VM`,
      `It becomes Running; past the creation timeout, ${IN_TURN}`,
    );
  if (holdOf(machine) !== undefined)
    return explanation(
      'NodeNotSetUp',
      descriptionOf(machine),
      `${its} to become usable`,
      `It becomes Running. Until then, ${IN_TURN}`,
    );
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
        `the Node conditions to become healthy, and taints ${SETUP_TAINTS.join(' and ')} to be removed`,
        'It becomes Running; if they are not removed, the machine becomes Failed at the creation timeout.',
      );
}
