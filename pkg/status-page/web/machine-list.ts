import type { Attention } from '../../fleet/attention.ts';
import type { MachineView } from '../view.ts';

export const SORT_KEYS = ['attention', 'name', 'phase', 'since', 'fleet', 'node'] as const;

export type SortKey = (typeof SORT_KEYS)[number];

export interface MachineQuery {
  /** Words that each have to be found in a row. */
  readonly words: string;
  readonly attention: Attention | undefined;
  readonly phase: string | undefined;
  readonly fleet: string | undefined;
  readonly sort: SortKey;
  readonly isDescending: boolean;
  /** Counted from 0. */
  readonly page: number;
}

export const EVERYTHING: MachineQuery = {
  words: '',
  attention: undefined,
  phase: undefined,
  fleet: undefined,
  sort: 'attention',
  isDescending: false,
  page: 0,
};

export const PAGE_SIZE = 50;

export interface MachinePage {
  readonly rows: readonly MachineView[];
  readonly found: number;
  /** Counted from 0; another than the one that was asked for where there are fewer. */
  readonly page: number;
  readonly pages: number;
}

const ORDER: Readonly<Record<Attention, number>> = { attention: 0, progressing: 1, ok: 2 };

export function selectMachines(machines: Iterable<MachineView>, query: MachineQuery): MachinePage {
  const words = query.words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const found = [...machines].filter((machine) => isWanted(machine, query, words));
  const sign = query.isDescending ? -1 : 1;
  found.sort((a, b) => sign * compare(a, b, query.sort) || byKey(a, b));
  const pages = Math.max(1, Math.ceil(found.length / PAGE_SIZE));
  const page = Math.min(query.page, pages - 1);
  return { rows: found.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE), found: found.length, page, pages };
}

function isWanted(machine: MachineView, query: MachineQuery, words: readonly string[]): boolean {
  if (query.attention !== undefined && machine.attention !== query.attention) return false;
  if (query.phase !== undefined && machine.phase !== query.phase) return false;
  if (query.fleet !== undefined && machine.fleet !== query.fleet) return false;
  if (words.length === 0) return true;
  const { key, phase, reason, message, waitingFor = '', node = '', providerID = '', fleet = '' } = machine;
  const whole = [key, phase, reason, message, waitingFor, node, providerID, fleet].join('\n').toLowerCase();
  return words.every((word) => whole.includes(word));
}

function compare(a: MachineView, b: MachineView, sort: SortKey): number {
  switch (sort) {
    case 'attention':
      // What waits longest is first among its equals.
      return (
        ORDER[a.attention] - ORDER[b.attention] || (a.attention === 'ok' ? 0 : text(a.since ?? '~', b.since ?? '~'))
      );
    case 'name':
      return byKey(a, b);
    case 'phase':
      return text(a.phase, b.phase) || text(a.reason, b.reason);
    case 'since':
      return text(a.since ?? '~', b.since ?? '~');
    case 'fleet':
      return text(a.fleet ?? '~', b.fleet ?? '~');
    case 'node':
      return text(a.node ?? '~', b.node ?? '~');
  }
}

function byKey(a: MachineView, b: MachineView): number {
  return text(a.key, b.key);
}

function text(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
