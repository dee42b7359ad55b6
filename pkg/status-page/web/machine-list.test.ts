import { describe, expect, test } from '@jest/globals';

import type { MachineView } from '../view.ts';
import { EVERYTHING, type MachineQuery, PAGE_SIZE, selectMachines } from './machine-list.ts';

function machine(name: string, more: Partial<MachineView> = {}): MachineView {
  const base = {
    name,
    namespace: 'ns',
    key: `ns/${name}`,
    phase: 'Running',
    attention: 'ok',
    reason: 'Running',
  } as const;
  return { ...base, message: '', nextStep: '', ...more };
}

const ALL: readonly MachineView[] = [
  machine('d', { since: '2026-01-01T00:00:01Z', fleet: 'ns/x', node: 'n2' }),
  machine('a', {
    phase: 'Failed',
    attention: 'attention',
    reason: 'Failed',
    message: 'No Quota',
    since: '2026-01-01T00:00:05Z',
  }),
  machine('c', {
    phase: 'Pending',
    attention: 'progressing',
    reason: 'WaitingForNode',
    since: '2026-01-01T00:00:03Z',
    fleet: 'ns/x',
  }),
  machine('b', {
    phase: 'Unknown',
    attention: 'attention',
    waitingFor: 'Node n1',
    since: '2026-01-01T00:00:04Z',
    fleet: 'ns/y',
    node: 'n1',
  }),
];

const names = (query: Partial<MachineQuery>): string[] =>
  selectMachines(ALL, { ...EVERYTHING, ...query }).rows.map(({ name }) => name);

describe('the list of machines', () => {
  test.each<{ query: Partial<MachineQuery>; want: string }>([
    { query: {}, want: 'b a c d' },
    { query: { isDescending: true }, want: 'd c a b' },
    { query: { sort: 'name' }, want: 'a b c d' },
    { query: { sort: 'name', isDescending: true }, want: 'd c b a' },
    { query: { sort: 'since' }, want: 'd c b a' },
    { query: { sort: 'phase' }, want: 'a c d b' },
    { query: { sort: 'fleet' }, want: 'c d b a' },
    { query: { sort: 'node' }, want: 'b d a c' },
    { query: { attention: 'attention' }, want: 'b a' },
    { query: { phase: 'Pending' }, want: 'c' },
    { query: { fleet: 'ns/x' }, want: 'c d' },
    { query: { words: ' quota ' }, want: 'a' },
    { query: { words: 'node N1' }, want: 'b' },
    { query: { words: 'waitingfornode ns/x' }, want: 'c' },
    { query: { words: 'nothing' }, want: '' },
  ])('has for $query: $want', ({ query, want }) => {
    expect(names(query).join(' ')).toBe(want);
  });

  test('has a page at a time, and the last one where there are fewer', () => {
    const many = Array.from({ length: 2 * PAGE_SIZE + 1 }, (_, i) => machine(String(i).padStart(4, '0')));

    const second = selectMachines(many, { ...EVERYTHING, page: 1 });
    const beyond = selectMachines(many, { ...EVERYTHING, page: 9 });

    expect(second).toMatchObject({ found: 101, page: 1, pages: 3 });
    expect(second.rows.map(({ name }) => name)[0]).toBe('0050');
    expect(second.rows).toHaveLength(PAGE_SIZE);
    expect(beyond).toMatchObject({ page: 2, rows: [{ name: '0100' }] });
    expect(selectMachines([], EVERYTHING)).toEqual({ rows: [], found: 0, page: 0, pages: 1 });
  });
});
