import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { type BuiltMachine, machine, node } from '../../test/builders.ts';
import type { CurrentStatus, MachineStatus } from '../apis/machine/v1alpha1/machine.ts';
import type { NodeOfMachine } from '../controllers/machine-deployment/node-marks/node-marker.ts';
import { creationError, type GroupFacts, instancesOf, MOST_PLACES } from './instances.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

const built = (change: (m: BuiltMachine) => void = () => undefined): NodeOfMachine['machine'] =>
  machine((m) => {
    m.metadata.name = 'm';
    change(m);
  });
const failedCreate =
  (errorCode: string, description = 'no quota') =>
  (m: BuiltMachine) => {
    m.status.currentStatus.phase = 'CrashLoopBackOff';
    m.status.lastOperation = { type: 'Create', state: 'Failed', errorCode, description };
  };
const ofNode = (providerID: string | undefined) =>
  node((n) => (n.spec = providerID === undefined ? {} : { providerID }));
const failed = (m: BuiltMachine): void => void (m.status.currentStatus.phase = 'Failed');
const preserved = (m: BuiltMachine): void => {
  failed(m);
  m.status.currentStatus.preserveExpiryTime = '2026-01-02T00:00:00Z';
};
const REQUESTED = 'requested://m';

const pool = (facts: Pick<GroupFacts, 'replicas' | 'machines'> & Partial<GroupFacts>) =>
  instancesOf({
    id: 'pool',
    min: 0,
    owed: 0,
    ambiguous: new Set(),
    chosen: new Set(),
    places,
    provisionMs: undefined,
    seenMs: (sinceMs) => NOW - sinceMs,
    nowMs: NOW,
    ...facts,
  });

function one(each: NodeOfMachine, chosen: readonly string[] = []) {
  return pool({ replicas: 1, machines: [each], chosen: new Set(chosen) }).slice(0, 1);
}

const places = (count: number): string[] => Array.from({ length: count }, (_, i) => `x-${i}`);

describe('the instance of a Machine', () => {
  test.each([
    { what: 'with a Node', machine: built(), node: ofNode('cloud:///1'), want: { id: 'cloud:///1', state: 'running' } },
    { what: 'without a Node', machine: built(), node: undefined, want: { id: REQUESTED, state: 'creating' } },
    {
      what: 'that the provider has no room for',
      machine: built(failedCreate('ResourceExhausted')),
      node: undefined,
      want: {
        id: REQUESTED,
        state: 'creating',
        error: { code: 'ResourceExhausted', message: 'no quota', class: 'out-of-resources' },
      },
    },
    ...[
      'PermissionDenied',
      'Unauthenticated',
      'InvalidArgument',
      'NotFound',
      'FailedPrecondition',
      'OutOfRange',
      'Unimplemented',
    ].map((code) => ({
      what: `whose creation failed with ${code}`,
      machine: built(failedCreate(code)),
      node: undefined,
      want: { id: REQUESTED, state: 'creating', error: { code, message: 'no quota', class: 'other' } },
    })),
    ...['Unavailable', 'Internal', 'NeverAsked'].map((code) => ({
      what: `whose creation failed with ${code}, and is tried again`,
      machine: built(failedCreate(code)),
      node: undefined,
      want: { id: REQUESTED, state: 'creating' },
    })),
    {
      what: 'that is being deleted',
      machine: built((m) => (m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z')),
      node: ofNode('cloud:///1'),
      want: { id: 'cloud:///1', state: 'deleting' },
    },
    {
      what: 'that failed',
      machine: built(failed),
      node: ofNode('cloud:///1'),
      want: { id: 'cloud:///1', state: 'deleting' },
    },
    {
      what: 'that failed without a Node',
      machine: built(failed),
      node: undefined,
      want: { id: REQUESTED, state: 'deleting' },
    },
    {
      what: 'that is preserved',
      machine: built(preserved),
      node: ofNode('cloud:///1'),
      want: { id: 'cloud:///1', state: 'running' },
    },
    {
      what: 'that was preserved, and has its replica until it is replaced',
      machine: built((m) => {
        m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: '2025-12-31T00:00:00Z' };
      }),
      node: ofNode('cloud:///1'),
      want: { id: 'cloud:///1', state: 'running' },
    },
    {
      what: 'that is preserved without a Node',
      machine: built(preserved),
      node: undefined,
      want: { id: REQUESTED, state: 'creating' },
    },
    {
      what: 'that has lost its Node',
      machine: built((m) => void (m.status.currentStatus.phase = 'Unknown')),
      node: undefined,
      want: { id: REQUESTED, state: 'running' },
    },
  ])('$what', ({ machine: of, node: its, want }) => {
    expect(one({ machine: of, node: its })).toEqual([want]);
  });

  test('tells of a long error only its beginning', () => {
    const { message = '' } = creationError(built(failedCreate('ResourceExhausted', 'no quota '.repeat(1_000)))) ?? {};

    expect(message).toMatch(/^no quota no quota .*…$/);
    expect(message).toHaveLength(1_024);
  });

  test('that an autoscaler has chosen is going', () => {
    expect(one({ machine: built(), node: ofNode('cloud:///1') }, ['m'])).toEqual([
      { id: 'cloud:///1', state: 'deleting' },
    ]);
    expect(one({ machine: built(), node: undefined }, ['m'])).toEqual([{ id: REQUESTED, state: 'deleting' }]);
  });

  test('is left out while its Node has no providerID', () => {
    expect(pool({ replicas: 0, machines: [{ machine: built(), node: ofNode(undefined) }] })).toEqual([]);
  });
});

describe('a Machine for whose Node an autoscaler waits 10 minutes', () => {
  const provisionMs = 600_000;
  const ago = (ms: number, change: (m: BuiltMachine) => void = () => undefined) => ({
    machine: built((m) => {
      m.metadata.creationTimestamp = new Date(NOW - ms).toISOString();
      change(m);
    }),
    node: undefined,
  });
  const inPhase =
    (phase: CurrentStatus['phase'] | undefined, more: Partial<MachineStatus> = {}) =>
    (m: BuiltMachine): void => {
      Object.assign(m.status, more);
      if (phase === undefined) delete (m.status as Partial<MachineStatus>).currentStatus;
      else m.status.currentStatus.phase = phase;
    };
  const conditions = [{ type: 'Ready', status: 'True' }];
  const errorOf = (each: NodeOfMachine, facts: Partial<GroupFacts> = {}) =>
    pool({ replicas: 1, machines: [each], provisionMs, ...facts })[0]?.error;

  test.each([
    { what: 'is not created', change: inPhase(undefined) },
    { what: 'has no Node yet', change: inPhase('Pending') },
    { what: 'fails for a reason that passes', change: failedCreate('Unavailable') },
  ])(
    'that $what has failed after nine of them, before the autoscaler takes its request for fulfilled',
    ({ change }) => {
      expect(errorOf(ago(539_000, change))).toBeUndefined();
      expect(errorOf(ago(540_000, change))).toMatchObject({ code: 'DeadlineExceeded', class: 'other' });
      expect(errorOf(ago(540_000, change), { provisionMs: undefined })).toBeUndefined();
      expect(errorOf(ago(540_000, change), { min: 1 })).toBeUndefined();
    },
  );

  test('has failed at most two minutes before the end of a longer time: what takes long may still join', () => {
    const hour = { provisionMs: 3_600_000 };

    expect(errorOf(ago(3_479_000, inPhase('Pending')), hour)).toBeUndefined();
    expect(errorOf(ago(3_480_000, inPhase('Pending')), hour)?.message).toMatch(/^no Node has joined within 58m0s: /);
  });

  test('has not failed when it has several Nodes, as its deletion would be refused', () => {
    const ambiguous = new Set(['m']);

    expect(errorOf(ago(600_000, inPhase('Pending')), { ambiguous })).toBeUndefined();
    expect(errorOf(ago(600_000, failedCreate('ResourceExhausted')), { ambiguous })).toBeUndefined();
  });

  test('says what it waits for', () => {
    expect(errorOf(ago(600_000, failedCreate('Unavailable', 'try later')))?.message).toBe(
      'no Node has joined within 9m0s: try later',
    );
  });

  test('fails for its own reason where that lasts', () => {
    expect(errorOf(ago(600_000, failedCreate('ResourceExhausted')))).toMatchObject({ code: 'ResourceExhausted' });
  });

  test.each([
    { what: 'has lost its Node', change: inPhase('Unknown', { conditions }) },
    { what: 'lost its Node soon after it had joined', change: inPhase('Pending', { conditions }) },
    { what: 'runs', change: inPhase('Running') },
  ])('that $what may get it back', ({ change }) => {
    expect(errorOf(ago(3_600_000, change))).toBeUndefined();
  });
});

describe('the instances of a group', () => {
  test('replicas without a Machine have a place', () => {
    const machines = [
      { machine: built(), node: ofNode('cloud:///1') },
      { machine: built(failed), node: undefined },
    ];

    expect(pool({ replicas: 3, machines })).toEqual([
      { id: 'cloud:///1', state: 'running' },
      { id: REQUESTED, state: 'deleting' },
      { id: 'requested://pool#x-0', state: 'creating' },
      { id: 'requested://pool#x-1', state: 'creating' },
    ]);
  });

  describe('have errors only where the autoscaler may delete', () => {
    const exhausted = (
      name: string,
      creationTimestamp: string,
      change: (m: BuiltMachine) => void = () => undefined,
    ) => ({
      machine: built((m) => {
        failedCreate('ResourceExhausted')(m);
        Object.assign(m.metadata, { name, creationTimestamp });
        change(m);
      }),
      node: undefined,
    });
    const joined = { machine: built((m) => void (m.metadata.name = 'joined')), node: ofNode('cloud:///1') };
    const ages = ['2025-12-31T00:00:00Z', '2025-12-31T02:00:00Z', '2025-12-31T01:00:00Z', '2025-12-31T01:00:00Z'];
    const machines = [joined, ...ages.map((created, i) => exhausted(`m-${i}`, created))];

    test.each([
      { replicas: 5, min: 0, want: ['m-0', 'm-1', 'm-2', 'm-3'] },
      { replicas: 5, min: 2, want: ['m-1', 'm-2', 'm-3'] },
      { replicas: 5, min: 3, want: ['m-1', 'm-2'] },
      { replicas: 5, min: 4, want: ['m-1'] },
      { replicas: 5, min: 5, want: [] },
      { replicas: 5, min: 6, want: [] },
    ])('of $replicas replicas, of which $min stay: $want', ({ replicas, min, want }) => {
      const found = pool({ replicas, min, machines });

      expect(found.flatMap(({ id, error }) => (error === undefined ? [] : [id]))).toEqual(
        want.map((name) => `requested://${name}`),
      );
      expect(found.slice(1).every(({ state }) => state === 'creating')).toBe(true);
    });

    test('not of a Machine that is preserved, or already going', () => {
      const kept = exhausted('kept', '2025-12-31T03:00:00Z', (m) => {
        m.status.currentStatus.preserveExpiryTime = '2026-01-02T00:00:00Z';
      });
      const going = exhausted('going', '2025-12-31T04:00:00Z');

      const found = pool({ replicas: 2, min: 1, machines: [kept, going, machines[1]!], chosen: new Set(['going']) });

      expect(found).toEqual([
        { id: 'requested://kept', state: 'creating' },
        { id: 'requested://going', state: 'deleting' },
        expect.objectContaining({ id: 'requested://m-0', error: expect.anything() }),
      ]);
    });
  });

  test('one of several Nodes is none to be taken back', () => {
    const late = ['a', 'b'].map((name) => ({
      machine: built((m) => {
        failedCreate('ResourceExhausted')(m);
        m.metadata.name = name;
      }),
      node: undefined,
    }));
    const erring = (ambiguous: readonly string[]): number =>
      pool({ replicas: 2, min: 1, machines: late, ambiguous: new Set(ambiguous) }).filter(({ error }) => error).length;

    expect([erring([]), erring(['a'])]).toEqual([1, 1]);
    expect(pool({ replicas: 1, machines: late, ambiguous: new Set(['a']) }).some(({ error }) => error)).toBe(false);
  });

  describe('of which a rollout is under way', () => {
    const failing = (name: string, hour: number) => ({
      machine: built((m) => {
        failedCreate('ResourceExhausted')(m);
        Object.assign(m.metadata, { name, creationTimestamp: `2025-12-31T0${hour}:00:00Z` });
      }),
      node: undefined,
    });
    const joined = (i: number) => ({
      machine: built((m) => void (m.metadata.name = `joined-${i}`)),
      node: ofNode(`cloud:///${i}`),
    });
    const nodes = [0, 1, 2].map(joined);
    const told = (facts: Pick<GroupFacts, 'replicas' | 'machines'> & Partial<GroupFacts>) =>
      pool(facts)
        .filter(({ state }) => state === 'creating')
        .map(({ id, error }) => `${id}${error === undefined ? '' : ' fails'}`);

    test('leave out what is made beyond the size: taken back, it would cost a Machine that works', () => {
      expect(told({ replicas: 3, machines: [...nodes, failing('surge', 1)] })).toEqual([]);
    });

    test('show the youngest of what is made beyond the size and for a request of the autoscaler', () => {
      const machines = [...nodes, failing('younger', 2), failing('older', 1)];

      expect(told({ replicas: 4, machines })).toEqual(['requested://younger fails']);
    });

    test('show no error that would cost a Machine that works: one that is preserved keeps its replica, Node or not', () => {
      const kept = {
        machine: built((m) => {
          Object.assign(m.metadata, { name: 'kept', creationTimestamp: '2025-12-30T00:00:00Z' });
          m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: '2026-01-02T00:00:00Z' };
        }),
        node: undefined,
      };
      const machines = [joined(0), joined(1), kept, failing('instead', 1)];

      expect(told({ replicas: 4, owed: 1, machines })).toEqual(['requested://kept', 'requested://instead']);
      expect(told({ replicas: 3, machines })).toEqual(['requested://kept']);
    });

    test('show no error that would cost a Machine that works: one that has lost its Node keeps its replica', () => {
      const lost = {
        machine: built((m) => {
          Object.assign(m.metadata, { name: 'lost', creationTimestamp: '2025-12-30T00:00:00Z' });
          m.status.currentStatus.phase = 'Unknown';
        }),
        node: undefined,
      };
      const machines = [joined(0), joined(1), lost, failing('instead', 1)];

      expect(told({ replicas: 4, owed: 1, machines })).toEqual(['requested://instead']);
      expect(told({ replicas: 4, machines })).toEqual(['requested://instead fails']);
    });

    test('show no error that would cost a Machine that works: one that runs keeps its replica, also if its Node is not seen', () => {
      const unseen = {
        machine: built((m) => {
          Object.assign(m.metadata, { name: 'unseen', creationTimestamp: '2025-12-30T00:00:00Z' });
        }),
        node: undefined,
      };
      const machines = [joined(0), joined(1), unseen, failing('surge', 1)];

      expect(told({ replicas: 3, machines })).toEqual(['requested://surge']);
      expect(told({ replicas: 4, machines })).toEqual(['requested://unseen', 'requested://surge fails']);
    });

    test('show no error of what is made for Machines that are gone already', () => {
      const machines = [joined(0), joined(1), failing('instead', 1)];

      expect(told({ replicas: 3, owed: 1, machines })).toEqual(['requested://instead']);
      expect(told({ replicas: 4, owed: 1, machines: [...machines, failing('requested', 2)] })).toEqual([
        'requested://instead',
        'requested://requested fails',
      ]);
    });
  });

  test('have places for as many as anybody waits for, however large a size somebody has typed', () => {
    const found = pool({ replicas: 2_147_483_647, machines: [] });

    expect(found).toHaveLength(MOST_PLACES);
    expect(found.at(-1)?.id).toBe('requested://pool#x-9999');
  });

  test('are never fewer than the group should have, and never of one id twice', () => {
    const kinds = [() => undefined, failed, preserved, failedCreate('ResourceExhausted')] as const;
    const each = fc.record({ kind: fc.nat(kinds.length - 1), hasNode: fc.boolean(), isChosen: fc.boolean() });
    fc.assert(
      fc.property(fc.nat(8), fc.nat(8), fc.array(each, { maxLength: 8 }), (replicas, min, all) => {
        const name = (i: number): string => `m-${i}`;
        const machines = all.map(({ kind, hasNode }, i) => ({
          machine: machine((m) => {
            m.metadata.name = name(i);
            kinds[kind]?.(m);
          }),
          node: hasNode ? ofNode(`cloud:///${i}`) : undefined,
        }));
        const chosen = new Set(all.flatMap(({ isChosen }, i) => (isChosen ? [name(i)] : [])));

        const found = pool({ replicas, min, machines, chosen });

        expect(found.filter(({ state }) => state !== 'deleting').length).toBeGreaterThanOrEqual(replicas);
        expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
        expect(found.filter(({ error }) => error !== undefined).length).toBeLessThanOrEqual(
          Math.max(0, replicas - min),
        );
      }),
    );
  });
});
