import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { describeStage, type DeletionStage } from '../../machine-facts/deletion-stage.ts';
import { hold, HOLD_KINDS, withHold, type ReplacementHoldKind } from '../../machine-facts/replacement-hold.ts';
import { machineConditions } from './conditions.ts';
import { explain } from './explain.ts';

type Change = (m: ReturnType<typeof machine>) => void;
const NOW_MS = Date.parse('2026-01-01T00:05:00Z');
const ready = { type: 'Ready', status: 'True' };

const fresh: Change = (m) => {
  m.metadata.labels = {};
  m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
  m.status = {} as (typeof m)['status'];
};
const failing: Change = (m) => {
  fresh(m);
  m.status.lastOperation = {
    type: 'Create',
    state: 'Failed',
    description: 'MachineClass default/x not found: create it.',
  };
};
const crashing: Change = (m) => {
  fresh(m);
  m.status.currentStatus = { phase: 'CrashLoopBackOff' };
  m.status.lastOperation = { type: 'Create', state: 'Failed', errorCode: 'ResourceExhausted', description: 'no quota' };
};
const inPhase =
  (phase: MachinePhase, conditions: { type: string; status: string }[] = []): Change =>
  (m) => {
    m.status.currentStatus.phase = phase;
    m.status.conditions = conditions;
  };
const deleting =
  (description: string, state: 'Processing' | 'Failed' = 'Processing'): Change =>
  (m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:01:00Z';
    m.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
    m.status.currentStatus.phase = 'Terminating';
    m.status.lastOperation = { type: 'Delete', state, description };
  };

const crashingWith =
  (errorCode: string, description: string): Change =>
  (m) => {
    fresh(m);
    m.status.currentStatus = { phase: 'CrashLoopBackOff' };
    m.status.lastOperation = { type: 'Create', state: 'Failed', errorCode, description };
  };
const held =
  (kind: ReplacementHoldKind): Change =>
  (m) => {
    m.status.currentStatus.phase = 'Unknown';
    m.status.lastOperation.description = withHold('The Node is ill.', hold(kind, 'a'));
    m.status.lastOperation.errorCode = hold(kind, 'a').code;
  };
const HELD_REASONS: Readonly<Record<ReplacementHoldKind, string>> = {
  target: 'NoNodesInTarget',
  zone: 'ZoneUnhealthy',
  stopped: 'ReplacementStopped',
  pace: 'ReplacementPaced',
  limit: 'ReplacementDelayed',
  grace: 'SafetyGrace',
};

describe('explain', () => {
  test.each([
    { what: 'a new machine', change: fresh, reason: 'Creating', waitingFor: 'the VM to be created' },
    {
      what: 'a class that is missing',
      change: failing,
      reason: 'CannotCreate',
      waitingFor: 'the MachineClass or its Secret to be corrected',
    },
    {
      what: 'a class that was missing from the beginning',
      change: crashingWith('NeverAsked', 'No VM was asked for: MachineClass default/x not found: create it.'),
      reason: 'CannotCreate',
      waitingFor: 'the MachineClass or its Secret to be corrected',
    },
    {
      what: 'an API server that makes no token',
      change: crashingWith('PreparationFailed', 'Could not prepare the creation of the VM: secrets is forbidden'),
      reason: 'PreparationFailed',
      waitingFor: 'the API server to allow it',
    },
    ...HOLD_KINDS.map((kind) => ({
      what: `an unhealthy machine that is held back: ${kind}`,
      change: held(kind),
      reason: HELD_REASONS[kind],
      waitingFor: expect.any(String),
    })),
    {
      what: 'a class that has come',
      change: (m) => {
        crashing(m);
        m.status.lastOperation = { type: 'Create', state: 'Processing', description: 'x' };
      },
      reason: 'Creating',
      waitingFor: 'the VM to be created',
    },
    { what: 'a provider without quota', change: crashing, reason: 'ResourceExhausted', waitingFor: 'the next retry' },
    { what: 'a VM that boots', change: inPhase('Pending'), reason: 'WaitingForNode', waitingFor: 'Node m-1 to join' },
    {
      what: 'a Node that is not ready',
      change: inPhase('Pending', [{ type: 'Ready', status: 'False' }]),
      reason: 'NodeNotReady',
      waitingFor: 'Node m-1 to become healthy',
    },
    {
      what: 'a Node without its components',
      change: inPhase('Pending', [ready]),
      reason: 'NodeNotUsable',
      waitingFor: expect.stringContaining('critical-components'),
    },
    {
      what: 'a Node without its components past the creation timeout',
      change: (m) => {
        inPhase('Pending', [ready])(m);
        m.status.lastOperation = {
          type: 'Create',
          state: 'Processing',
          errorCode: 'TooManyReplacements',
          description: 'x',
        };
      },
      reason: 'NodeNotSetUp',
      waitingFor: 'Node m-1 to become usable',
    },
    {
      what: 'a VM that is not initialized, and another failure',
      change: (m) => {
        crashing(m);
        m.spec.providerID = 'sim:///m-1';
        const told = { errorCode: 'VMBeingInitialized', description: 'Secret default/secret-1 does not exist.' };
        m.status.lastOperation = { type: 'Create', state: 'Failed', ...told };
      },
      reason: 'NotInitialized',
      waitingFor: 'this to be corrected, or to pass',
    },
    { what: 'a running machine', change: inPhase('Running', [ready]), reason: 'Running', waitingFor: undefined },
    {
      what: 'an unhealthy machine',
      change: inPhase('Unknown'),
      reason: 'Unhealthy',
      waitingFor: 'Node m-1 to become healthy',
    },
    {
      what: 'an unhealthy machine that names no Node',
      change: (m) => {
        inPhase('Unknown')(m);
        m.metadata.labels = {};
      },
      reason: 'Unhealthy',
      waitingFor: 'its Node to become healthy',
    },
    { what: 'a failed machine of nobody', change: inPhase('Failed'), reason: 'Failed', waitingFor: undefined },
    { what: 'a machine without target', change: inPhase('Available'), reason: 'Available', waitingFor: undefined },
    {
      what: 'a deletion that was asked for',
      change: deleting('Deleting machine from cloud provider'),
      reason: 'DeletionRequested',
      waitingFor: 'the machine controller to start the deletion',
    },
    { what: 'a drain', change: deleting(describeStage('drain')), reason: 'Draining', waitingFor: 'the pods to leave' },
    {
      what: 'a drain that failed',
      change: deleting(describeStage('drain', 'x'), 'Failed'),
      reason: 'DrainFailed',
      waitingFor: 'the pods to leave',
    },
    {
      what: 'a VM that is deleted',
      change: deleting(describeStage('delete-vm')),
      reason: 'DeletingVM',
      waitingFor: 'the provider to delete the VM',
    },
    {
      what: 'a deletion that only others hold up',
      change: (m) => {
        deleting(describeStage('release-finalizer'))(m);
        m.metadata.finalizers = ['foreign/one'];
      },
      reason: 'KeptByOthers',
      waitingFor: 'finalizer foreign/one to be removed by its owner',
    },
    {
      what: 'a finalizer that must stay',
      change: (m) => {
        deleting(describeStage('release-finalizer', 'The API server refuses.'), 'Failed')(m);
        m.status.lastOperation.errorCode = 'RecordRefused';
      },
      reason: 'RecordRefused',
      waitingFor: 'the API server to allow it',
    },
    {
      what: 'a VM that cannot be deleted',
      change: deleting(describeStage('delete-vm', 'x'), 'Failed'),
      reason: 'VMDeletionFailed',
      waitingFor: 'the provider to delete the VM',
    },
  ])('$what: $reason', ({ change, reason, waitingFor }) => {
    const explanation = explain(machine(change), NOW_MS);

    expect(explanation).toMatchObject({ reason });
    expect(explanation.waitingFor).toEqual(waitingFor);
    expect(explanation.message).not.toBe('');
    expect(explanation.nextStep).not.toBe('');
  });

  test.each([
    { code: 'InvalidArgument', isCorrectable: true },
    { code: 'ResourceExhausted', isCorrectable: false },
  ])('after $code says whether a correction of the class is tried at once: $isCorrectable', (row) => {
    const { nextStep } = explain(
      machine((m) => {
        crashing(m);
        m.status.lastOperation.errorCode = row.code;
      }),
      NOW_MS,
    );

    expect(nextStep.includes('immediately when the MachineClass or its Secret is corrected')).toBe(row.isCorrectable);
  });

  test('tells what a drain waits for', () => {
    const text = 'Waiting for 1 pod: a/b (PodDisruptionBudget c).';

    expect(explain(machine(deleting(describeStage('drain', text))), NOW_MS).message).toBe(text);
  });

  test('says the same at any time, but for how long it has been so', () => {
    const m = machine();
    const [early, late] = [explain(m, NOW_MS), explain(m, NOW_MS + 60_000)];

    expect(early.sinceMs).toBe(300_000);
    expect({ ...late, sinceMs: early.sinceMs }).toEqual(early);
  });

  test('knows a machine that is nothing but a name', () => {
    const bare = { metadata: { name: 'm-1' } } as unknown as ReturnType<typeof machine>;

    expect(explain(bare, NOW_MS)).toMatchObject({ phase: '', reason: 'Creating', sinceMs: undefined });
  });
});

describe('conditions', () => {
  const statusOf = (change: Change): Record<string, string> =>
    Object.fromEntries(machineConditions(machine(change), NOW_MS).map(({ type, status }) => [type, status]));

  test.each([
    { what: 'a new machine', change: fresh, want: { VMCreated: 'False', NodeJoined: 'False', Healthy: 'False' } },
    {
      what: 'a VM that boots',
      change: inPhase('Pending'),
      want: { VMCreated: 'True', NodeJoined: 'False', Healthy: 'False' },
    },
    {
      what: 'a running machine',
      change: inPhase('Running', [ready]),
      want: { VMCreated: 'True', NodeJoined: 'True', Healthy: 'True' },
    },
    {
      what: 'an unhealthy one',
      change: inPhase('Unknown', [ready]),
      want: { VMCreated: 'True', NodeJoined: 'True', Healthy: 'Unknown' },
    },
    { what: 'a drain', change: deleting(describeStage('drain')), want: { Drained: 'False' } },
    { what: 'the end', change: deleting(describeStage('delete-vm')), want: { Drained: 'True' } },
  ])('of $what', ({ change, want }) => {
    expect(statusOf(change)).toMatchObject(want);
  });

  const refusedAs =
    (errorCode: 'RecordRefused' | 'FinalizerRefused', phase: MachinePhase = 'CrashLoopBackOff'): Change =>
    (m) => {
      crashing(m);
      m.status.currentStatus = { phase };
      if (errorCode === 'RecordRefused') m.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
      m.status.lastOperation = { type: 'Create', state: 'Failed', errorCode, description: 'It refuses.' };
    };

  test.each([
    { what: 'a VM that may not be recorded', change: refusedAs('RecordRefused'), vm: 'True' },
    { what: 'one whose machine has failed', change: refusedAs('RecordRefused', 'Failed'), vm: 'True' },
    { what: 'a machine that may not have our finalizer', change: refusedAs('FinalizerRefused'), vm: 'False' },
    {
      what: 'a machine that must keep it',
      change: (m) => {
        deleting(describeStage('release-finalizer', 'It refuses.'), 'Failed')(m);
        m.status.lastOperation.errorCode = 'RecordRefused';
        m.status.conditions = [ready];
      },
      vm: 'False',
    },
  ] satisfies { what: string; change: Change; vm: string }[])('of $what say so', ({ change, vm }) => {
    const told = machineConditions(machine(change), NOW_MS);

    expect(told.find(({ type }) => type === 'RecordRefused')).toMatchObject({ status: 'True', message: 'It refuses.' });
    expect(statusOf(change)).toMatchObject({ VMCreated: vm, NodeJoined: 'False', Healthy: 'False' });
    expect(told.map(({ message }) => message).includes('There is no VM yet.')).toBe(
      vm === 'False' && told.every(({ type }) => type !== 'Drained'),
    );
  });

  test('say nothing of a refusal that is over', () => {
    const protectedNow = machine((m) => {
      refusedAs('FinalizerRefused')(m);
      m.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
    });
    const recorded = machine((m) => {
      refusedAs('RecordRefused')(m);
      m.spec = { ...m.spec, providerID: 'sim:///m-1' };
    });

    for (const one of [protectedNow, recorded])
      expect(machineConditions(one, NOW_MS).map(({ type }) => type)).not.toContain('RecordRefused');
  });

  test.each([
    { code: 'NotFound', vm: 'False' },
    { code: 'Internal', vm: 'Unknown' },
  ])('do not say that a VM exists which the driver does not confirm ($code): $vm', ({ code, vm }) => {
    const [created] = machineConditions(
      machine((m) => {
        crashing(m);
        m.spec = { ...m.spec, providerID: 'local:///foo' };
        const description = 'Cloud provider message - it tells of no VM.';
        m.status.lastOperation = { ...m.status.lastOperation, errorCode: code, description };
      }),
      NOW_MS,
    );

    expect(created).toMatchObject({ status: vm, message: expect.stringContaining('it tells of no VM') });
  });

  test.each([
    { what: 'whose VM has vanished', operation: {}, vm: 'False' },
    { what: 'that is unhealthy', operation: { errorCode: 'ZoneUnhealthy' }, vm: 'True' },
    { what: 'that is looked at', operation: { state: 'Processing' }, vm: 'True' },
    { what: 'that was updated', operation: { type: 'Update' }, vm: 'True' },
  ])('say of a machine $what whether there is a VM: $vm', ({ operation, vm }) => {
    const [created] = machineConditions(
      machine((m) => {
        const failed = { type: 'HealthCheck', state: 'Failed', errorCode: 'NotFound', description: 'x' };
        Object.assign(m.status.lastOperation, failed, operation);
      }),
      NOW_MS,
    );

    expect(created).toMatchObject({ type: 'VMCreated', status: vm });
  });

  test('tell only VMCreated why there is no VM', () => {
    const [created, ...others] = machineConditions(machine(crashing), NOW_MS);

    expect(created).toMatchObject({ reason: 'ResourceExhausted', message: 'no quota' });
    expect(others.map(({ reason, message }) => [reason, message])).toEqual([
      ['NoVM', 'There is no VM yet.'],
      ['NoVM', 'There is no VM yet.'],
    ]);
  });

  test('keep the time at which they turned', () => {
    const m = machine(inPhase('Running', [ready]));
    m.status.machineConditions = machineConditions(m, NOW_MS);
    m.status.currentStatus.phase = 'Unknown';

    const later = machineConditions(m, NOW_MS + 60_000);

    expect(later.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).toEqual([
      ['VMCreated', '2026-01-01T00:05:00Z'],
      ['NodeJoined', '2026-01-01T00:05:00Z'],
      ['Healthy', '2026-01-01T00:06:00Z'],
    ]);
  });
});

describe('a deletion policy', () => {
  const under =
    (policy: string, change: Change): Change =>
    (m) => {
      change(m);
      m.metadata.annotations = { 'machine.sapcloud.io/deletion-policy-in-force': policy };
    };

  test.each([
    {
      policy: 'graceful',
      stage: 'drain',
      next: 'set annotation machine.sapcloud.io/deletion-policy to unsafe or forced',
    },
    { policy: 'unsafe', stage: 'delete-vm', next: 'set annotation machine.sapcloud.io/deletion-policy to forced' },
    { policy: 'forced', stage: 'delete-vm', next: 'after --forced-deletion-timeout the Machine is removed anyway' },
  ] as const)('$policy at stage $stage says what ends it', ({ policy, stage, next }) => {
    const { nextStep } = explain(machine(under(policy, deleting(describeStage(stage)))), NOW_MS);

    expect(nextStep).toContain(next);
  });
});

test('of a Machine that was made of one of cluster.k8s.io, fields of that one are named: annotations would be put back', () => {
  const made = (change: Change): string =>
    explain(
      machine((m) => {
        const owner = { apiVersion: 'cluster.k8s.io/v1alpha1', kind: 'Machine', name: 'm-1', uid: 'u-1' };
        m.metadata.ownerReferences = [{ ...owner, controller: true }];
        change(m);
      }),
      NOW_MS,
    ).nextStep;
  const inForce =
    (policy: string, stage: DeletionStage): Change =>
    (m) => {
      deleting(describeStage(stage))(m);
      m.metadata.annotations = { 'machine.sapcloud.io/deletion-policy-in-force': policy };
    };
  const failed = made((m) => {
    m.metadata.annotations = { 'machine.sapcloud.io/prepare-deletion': 'true' };
    m.status.machineConditions = [{ type: 'DeletionPrepared', status: 'False', reason: 'failed' }];
  });

  const policy = 'set spec.providerSpec.value.deletionPolicy of machines.cluster.k8s.io m-1 to';
  expect(made(inForce('graceful', 'drain'))).toContain(`${policy} unsafe or forced`);
  expect(made(inForce('unsafe', 'delete-vm'))).toContain(`${policy} forced`);
  expect(failed).toContain(`${policy} unsafe or forced`);
  expect(failed).toContain('set spec.providerSpec.value.delete of machines.cluster.k8s.io m-1 to false');
});

describe('a deletion that is prepared', () => {
  test.each([
    { phase: 'started', asked: 'true', reason: 'PreparingDeletion', next: 'To keep the machine, remove annotation' },
    { phase: 'blocked', asked: 'true', reason: 'DrainBlocked', next: 'To keep the machine, remove annotation' },
    { phase: 'completed', asked: 'true', reason: 'PreparedDeletion', next: 'Its VM is deleted' },
    { phase: 'aborting', asked: 'false', reason: 'AbortingDeletion', next: 'continues as before' },
    { phase: 'failed', asked: 'true', reason: 'DeletionNotPrepared', next: 'to unsafe or forced' },
    { phase: 'failed', asked: 'false', reason: 'AbortFailed', next: 'continues as before' },
  ])('$phase, with $asked, is $reason and says what ends it', ({ phase, asked, reason, next }) => {
    const prepared = machine((m) => {
      m.metadata.annotations = { 'machine.sapcloud.io/prepare-deletion': asked };
      const told = { type: 'DeletionPrepared', status: 'False', reason: phase, message: 'Waiting for 1 pod.' } as const;
      m.status.machineConditions = [told];
    });

    const explained = explain(prepared, NOW_MS);

    expect(explained).toMatchObject({ reason, message: 'Waiting for 1 pod.' });
    expect(explained.nextStep).toContain(next);
    expect(machineConditions(prepared, NOW_MS)).toContainEqual(expect.objectContaining({ reason: phase }));
  });

  test.each([
    { title: 'hooks', hooks: { 'pre-drain.hook.machine.sapcloud.io/backup': '' }, waitingFor: 'hooks to be removed' },
    { title: 'the pods, without hooks', hooks: {}, waitingFor: 'the pods to leave' },
  ])('waits for $title', ({ hooks, waitingFor }) => {
    const prepared = machine((m) => {
      m.metadata.annotations = { 'machine.sapcloud.io/prepare-deletion': 'true', ...hooks };
      m.status.machineConditions = [{ type: 'DeletionPrepared', status: 'False', reason: 'started' }];
    });

    expect(explain(prepared, NOW_MS)).toMatchObject({ waitingFor });
  });
});

test('a condition that is recorded twice is shown once, as it was recorded last', () => {
  const state = (reason: string) => ({ type: 'VMState', status: 'True', reason, message: '' }) as const;
  const one = machine((m) => void (m.status.machineConditions = [state('STARTING'), state('RUNNING')]));

  const shown = machineConditions(one, NOW_MS).filter(({ type }) => type === 'VMState');

  expect(shown).toEqual([state('RUNNING')]);
});
