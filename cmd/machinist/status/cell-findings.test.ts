import { expect, test } from '@jest/globals';

import { CELL_REPLICA_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Event, Lease } from '../../../pkg/apis/wire.ts';
import type { CellsInProgress, CellState } from '../../../pkg/health/work-in-progress.ts';
import { shardOf } from '../../../pkg/operator/cells/assignment.ts';
import { shardLeaseName } from '../../../pkg/operator/cells/lease-names.ts';
import type { CellLeases } from '../manager-leases.ts';
import { cellFindings, type CellFacts, hintFindings, leaderFindings } from './cell-findings.ts';
import type { StatusFinding } from './findings.ts';

const NOW_MS = Date.parse('2026-01-01T00:10:00Z');
const SHARDS = 4;
const FRESH = '2026-01-01T00:09:55Z';
const STALE = '2026-01-01T00:05:00Z';

function lease(name: string, holderIdentity: string, renewTime = FRESH, shards?: number): Lease {
  const labels = shards === undefined ? {} : { [CELL_REPLICA_LABEL]: String(shards) };
  const spec = { holderIdentity, renewTime, acquireTime: '2026-01-01T00:00:00Z', leaseDurationSeconds: 15 };
  return { metadata: { name, labels, uid: name, resourceVersion: '1' }, spec } as Lease;
}

function shardLeases(holders: readonly string[]): ReadonlyMap<number, Lease> {
  return new Map(
    holders.flatMap((holder, i) => (holder === '' ? [] : [[i, lease(shardLeaseName(i), holder)] as const])),
  );
}

function cellLeases(holders: readonly string[], replicas = [lease('r', 'a', FRESH, SHARDS)]): CellLeases {
  return { replicas, shards: shardLeases(holders) };
}

function textOf({ check, status, detail, remedy }: StatusFinding): string {
  return `${status} ${check} ${detail}${remedy === undefined ? '' : ` → ${remedy}`}`;
}

function told(states: readonly CellState[], held: readonly number[] = [0, 1, 2, 3]): CellsInProgress {
  return { selector: 'managed=yes', shards: SHARDS, held, states };
}

test.each([
  { what: 'all of one', leases: cellLeases(['a', 'a', 'a', 'a']), want: ['ok leaders 4 of 4 shards are held by a'] },
  {
    what: 'shared by two',
    leases: cellLeases(['a', 'b', 'a', 'a']),
    want: ['ok leaders 4 of 4 shards are held by a (3); b (1)'],
  },
  {
    what: 'not all held',
    leases: cellLeases(['a', '', 'a', '']),
    want: [expect.stringMatching(/^fail leaders 2 of 4 shards are held; the cells of the others are not managed → /)],
  },
  {
    what: 'of replicas that disagree',
    leases: cellLeases(
      ['a', 'a', 'a', 'a'],
      [lease('r', 'a', FRESH, SHARDS), lease('s', 'b', FRESH, 2), lease('t', 'gone', STALE, 9)],
    ),
    want: [
      'ok leaders 4 of 4 shards are held by a',
      'warn leaders replicas have different numbers of shards: 4 (a) and 2 (b); no further shard is taken → start all replicas with the same --cell-shards',
    ],
  },
])('shards: $what', ({ leases, want }) => {
  expect(leaderFindings({ leases: [], cellLeases: leases }, [], NOW_MS).map(textOf)).toEqual(want);
});

test('without Leases to see, the processes say which shards they hold', () => {
  expect(leaderFindings({ leases: [] }, [told([], [0, 1]), told([], [2, 3])], NOW_MS).map(textOf)).toEqual([
    'ok leaders 4 of 4 shards are held by these processes',
  ]);
  expect(leaderFindings({ leases: [], elsewhere: ['managers'] }, [], NOW_MS).map(textOf)).toEqual([
    'fail leaders no Lease of a manager found in this namespace; a manager of many namespaces has its Leases in namespace managers → set --manager-namespace=managers, if this namespace is one of its cells',
  ]);
});

const NAME = 'cell-a';
const INDEX = shardOf(NAME, SHARDS);
const RUNNING: CellState = { cell: NAME, state: 'running', troubles: [] };
const REFUSED: CellState = { cell: NAME, state: 'refused', troubles: ['Secret cell-a/target does not exist.'] };
const OTHER: CellState = { cell: 'cell-b', state: 'refused', troubles: ['x'] };
const labelled = (labels: Record<string, string>): KubeObject =>
  ({ metadata: { name: NAME, uid: 'u', resourceVersion: '1', labels } }) as KubeObject;
const EVENT = {
  reason: 'InvalidKubeconfig',
  message: 'Secret gone.',
  lastTimestamp: '2026-01-01T00:07:00Z',
} as unknown as Event;

test.each([
  {
    what: 'one that runs',
    facts: { told: [told([RUNNING])] },
    want: [`ok cells cell-a is managed by a (shard ${INDEX}, held for 10m)`, 'ok cells 1 cell is managed'],
  },
  {
    what: 'one that is refused, beside another',
    facts: { told: [told([REFUSED, OTHER])] },
    want: [
      expect.stringMatching(/^fail cells cell-a is not managed: Secret cell-a\/target does not exist → correct it: /),
      expect.stringMatching(/^warn cells 1 of 2 cells not managed: cell-b → set -n /),
    ],
  },
  {
    what: 'one whose target cluster is away, during a handover',
    facts: { told: [told([REFUSED]), told([{ ...RUNNING, troubles: ['API server of cluster "target" away'] }])] },
    want: [
      expect.stringMatching(/^warn cells cell-a is managed by a \(.*\); API server of cluster "target" away → see /),
    ],
  },
  {
    what: 'one of a process that does not answer',
    facts: { told: [], lastEvent: EVENT },
    want: [
      expect.stringMatching(
        /^warn cells cell-a belongs to a \(shard \d, held for 10m\), which did not answer; last Event, 3m ago: InvalidKubeconfig: Secret gone → /,
      ),
    ],
  },
  {
    what: 'one whose shard a process holds that did not answer, where another did',
    facts: { told: [told([], [])], object: labelled({}) },
    want: [
      expect.stringMatching(/^warn cells cell-a belongs to a .*, which did not answer → /),
      expect.stringMatching(/^warn cells the cells of 4 shards are not known: no process that holds them answered → /),
    ],
  },
  {
    what: 'a namespace that is none',
    facts: { told: [told([])], object: labelled({}) },
    want: [
      'fail cells cell-a is not a cell of this manager → label it so that it matches --cells=managed=yes; if another manager has it, check --manager-namespace',
    ],
  },
  {
    what: 'a namespace that does not exist',
    facts: { told: [told([])], isMissing: true },
    want: ['fail cells namespace cell-a does not exist → set -n to a namespace of Machines'],
  },
  {
    what: 'a namespace that is none any more, and has Machines',
    facts: { told: [{ ...told([]), others: ['cell-a', 'cell-b'] }], object: labelled({}) },
    want: [
      expect.stringMatching(
        /^fail cells cell-a is not a cell of this manager, which does not manage its Machines; their VMs keep running → label it /,
      ),
      'ok cells Machines of cell-b are not managed by this manager, because its selector does not match',
    ],
  },
  {
    what: 'a namespace that is not named',
    facts: { told: [{ ...told([]), selector: '', names: ['cell-b'] }], object: labelled({}) },
    want: [
      'fail cells cell-a is not a cell of this manager → add it to --cell-namespaces; if another manager has it, check --manager-namespace',
    ],
  },
  {
    what: 'one that is named',
    facts: { told: [{ ...told([]), selector: '', names: ['cell-a'] }], object: undefined },
    want: [expect.stringMatching(/^warn cells cell-a has yet to start /)],
  },
  {
    what: 'one that has just been labelled',
    facts: { told: [told([])], object: labelled({ managed: 'yes' }) },
    want: [expect.stringMatching(/^warn cells cell-a has yet to start /)],
  },
  {
    what: 'all of them',
    facts: { told: [told([RUNNING])], namespace: undefined },
    want: ['ok cells 1 cell is managed'],
  },
] as const)('cells: $what', ({ facts, want }) => {
  const all: CellFacts = { cellLeases: cellLeases(['a', 'a', 'a', 'a']), namespace: NAME, ...facts };

  expect(cellFindings(all, NOW_MS).map(textOf)).toEqual(want);
});

test.each([
  {
    what: 'an Event of a process with cells',
    seen: { lastEvent: EVENT },
    want: [
      'warn cells cell-a seems to be a cell of a manager in another namespace: last Event, 3m ago: InvalidKubeconfig: Secret gone → set --manager-namespace to the namespace of the Leases of that manager',
    ],
  },
  {
    what: 'settings of a cell',
    seen: { object: annotated({ 'cell.machine.sapcloud.io/machine-drain-timeout': '5m' }) },
    want: [expect.stringContaining('in another namespace: it has settings of one → set --manager-namespace')],
  },
  { what: 'nothing of the kind', seen: { object: annotated({ other: 'x' }) }, want: [] },
])('a namespace without a manager that has $what', ({ seen, want }) => {
  expect(hintFindings(NAME, seen, NOW_MS).map(textOf)).toEqual(want);
});

function annotated(annotations: Record<string, string>): KubeObject {
  return { metadata: { name: NAME, uid: 'u', resourceVersion: '1', annotations } } as KubeObject;
}
