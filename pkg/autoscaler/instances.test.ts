import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { type BuiltMachine, machine, node } from '../../test/builders.ts';
import type { NodeOfMachine } from '../controllers/machine-deployment/node-marks/node-marker.ts';
import { creationError, instancesOf, MOST_PLACES } from './instances.ts';

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

function one(each: NodeOfMachine, chosen: readonly string[] = []) {
  return instancesOf({ id: 'pool', replicas: 0, machines: [each], chosen: new Set(chosen), places, nowMs: NOW });
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
      what: 'that is preserved without a Node',
      machine: built(preserved),
      node: undefined,
      want: { id: REQUESTED, state: 'creating' },
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
    expect(one({ machine: built(), node: ofNode(undefined) })).toEqual([]);
  });
});

describe('the instances of a group', () => {
  test('replicas without a Machine have a place', () => {
    const machines = [
      { machine: built(), node: ofNode('cloud:///1') },
      { machine: built(failed), node: undefined },
    ];

    expect(instancesOf({ id: 'pool', replicas: 3, machines, chosen: new Set(), places, nowMs: NOW })).toEqual([
      { id: 'cloud:///1', state: 'running' },
      { id: REQUESTED, state: 'deleting' },
      { id: 'requested://pool#x-0', state: 'creating' },
      { id: 'requested://pool#x-1', state: 'creating' },
    ]);
  });

  test('have places for as many as anybody waits for, however large a size somebody has typed', () => {
    const found = instancesOf({
      id: 'pool',
      replicas: 2_147_483_647,
      machines: [],
      chosen: new Set(),
      places,
      nowMs: NOW,
    });

    expect(found).toHaveLength(MOST_PLACES);
    expect(found.at(-1)?.id).toBe('requested://pool#x-9999');
  });

  test('are never fewer than the group should have, and never of one id twice', () => {
    const kinds = [() => undefined, failed, preserved, failedCreate('ResourceExhausted')] as const;
    const each = fc.record({ kind: fc.nat(kinds.length - 1), hasNode: fc.boolean(), isChosen: fc.boolean() });
    fc.assert(
      fc.property(fc.nat(8), fc.array(each, { maxLength: 8 }), (replicas, all) => {
        const name = (i: number): string => `m-${i}`;
        const machines = all.map(({ kind, hasNode }, i) => ({
          machine: machine((m) => {
            m.metadata.name = name(i);
            kinds[kind]?.(m);
          }),
          node: hasNode ? ofNode(`cloud:///${i}`) : undefined,
        }));
        const chosen = new Set(all.flatMap(({ isChosen }, i) => (isChosen ? [name(i)] : [])));

        const found = instancesOf({ id: 'pool', replicas, machines, chosen, places, nowMs: NOW });

        expect(found.filter(({ state }) => state !== 'deleting').length).toBeGreaterThanOrEqual(replicas);
        expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
      }),
    );
  });
});
