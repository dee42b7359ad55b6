import { InvalidSelectorError, labelMatcher } from '../../../pkg/apis/label-selector.ts';
import { CELL_REPLICA_LABEL, CELL_SETTING_PREFIX } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { parseSelector } from '../../../pkg/apis/selector-text.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import { ageOf } from '../../../pkg/fleet/age.ts';
import type { CellsInProgress, CellState } from '../../../pkg/health/work-in-progress.ts';
import { holderOf } from '../../../pkg/kube/leader/lease.ts';
import { shardOf } from '../../../pkg/operator/cells/assignment.ts';
import { cellStateOf, troublesText } from '../cell-state.ts';
import { type CellLeases, isRenewed, type ManagerLeases } from '../manager-leases.ts';
import { leaseFindings, listed, type StatusFinding } from './findings.ts';

/** What is known of a manager with cells. */
export interface CellFacts {
  /** Undefined without leader election. */
  readonly cellLeases: CellLeases | undefined;
  /** What the processes say that answered. */
  readonly told: readonly CellsInProgress[];
  /** The one in question; undefined: it is none of them, such as that of the manager. */
  readonly namespace: string | undefined;
  /** The same as an object; undefined: it is not there, or may not be read. */
  readonly object?: KubeObject | undefined;
  /** The API server says that it is not there. */
  readonly isMissing?: boolean;
  /** The last one about that cell, as far as it was looked for. */
  readonly lastEvent?: Event | undefined;
}

const GUIDE = 'docs/operations/cells.md#when-a-cell-does-not-run';
const NO_LEADER = 'check the pods of the manager and their logs; see docs/runbooks/no-leader.md';

/** Who leads: under the Leases, or, where these are not to be seen, as processes with cells say. */
export function leaderFindings(
  found: ManagerLeases,
  told: readonly CellsInProgress[],
  nowMs: number,
): readonly StatusFinding[] {
  const { leases, cellLeases } = found;
  if (cellLeases !== undefined) return shardFindings(cellLeases, nowMs);
  const [first] = told;
  const isLed = leases.some((lease) => isRenewed(lease, nowMs));
  if (isLed || first === undefined) return leaseFindings(found, nowMs);
  const held = new Set(told.flatMap((one) => one.held)).size;
  return [heldFinding(held, first.shards, told.length === 1 ? 'by this process' : 'by these processes')];
}

/** Who holds the shards. */
function shardFindings({ replicas, shards }: CellLeases, nowMs: number): readonly StatusFinding[] {
  const count = shardCount({ replicas, shards }, nowMs);
  const all = Array.from({ length: count }, (_, index) => index);
  const holders = all.flatMap((index) => {
    const lease = shards.get(index);
    return lease !== undefined && isRenewed(lease, nowMs) ? [holderOf(lease)] : [];
  });
  const byHolder = [...Map.groupBy(holders, (holder) => holder)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const whom = byHolder.map(([holder, { length }]) => (byHolder.length === 1 ? holder : `${holder} (${length})`));
  return [
    heldFinding(holders.length, count, `by ${listed(whom)}`),
    ...countFindings(replicas.filter((lease) => isRenewed(lease, nowMs))),
  ];
}

function heldFinding(held: number, count: number, byWhom: string): StatusFinding {
  const detail = `${held} of ${count} shards are held`;
  if (held >= count) return { check: 'leaders', status: 'ok', detail: `${detail} ${byWhom}` };
  return {
    check: 'leaders',
    status: 'fail',
    detail: `${detail}; the cells of the others are not managed`,
    remedy: NO_LEADER,
  };
}

function countFindings(live: CellLeases['replicas']): readonly StatusFinding[] {
  const counts = Map.groupBy(live, (lease) => lease.metadata.labels?.[CELL_REPLICA_LABEL] ?? '');
  if (counts.size <= 1) return [];
  const whose = [...counts].map(([count, of]) => `${count} (${of.map((lease) => holderOf(lease)).join(', ')})`);
  return [
    {
      check: 'leaders',
      status: 'warn',
      detail: `replicas have different numbers of shards: ${whose.join(' and ')}; no further shard is taken`,
      remedy: 'start all replicas with the same --cell-shards',
    },
  ];
}

function shardCount({ replicas, shards }: CellLeases, nowMs: number): number {
  const live = replicas.filter((lease) => isRenewed(lease, nowMs));
  const counts = (live.length > 0 ? live : replicas).map((lease) =>
    Number(lease.metadata.labels?.[CELL_REPLICA_LABEL]),
  );
  return Math.max(...counts.filter((count) => count > 0), 0) || shards.size;
}

/** How the cells are: that of the namespace in question, and all. */
export function cellFindings(facts: CellFacts, nowMs: number): readonly StatusFinding[] {
  const { namespace, told } = facts;
  const states = told.flatMap((one) => one.states);
  return [
    ...(namespace === undefined ? [] : [namespaceFinding(facts, namespace, nowMs)]),
    ...otherFindings(states, namespace),
    ...unselectedFindings(told, namespace),
    ...unknownFindings(told),
  ];
}

/** Where no manager is found: whether the namespace has, or had, one with cells, whose Leases are elsewhere. */
export function hintFindings(
  name: string,
  { object, isMissing = false, lastEvent }: Pick<CellFacts, 'object' | 'isMissing' | 'lastEvent'>,
  nowMs: number,
): readonly StatusFinding[] {
  if (isMissing) return [missingFinding(name)];
  const isSet = Object.keys(object?.metadata.annotations ?? {}).some((key) =>
    key.startsWith(`${CELL_SETTING_PREFIX}/`),
  );
  if (lastEvent === undefined && !isSet) return [];
  const why = lastEvent === undefined ? 'it has settings of one' : `last Event, ${eventText(lastEvent, nowMs)}`;
  return [
    {
      check: 'cells',
      status: 'warn',
      detail: `${name} seems to be a cell of a manager in another namespace: ${why}`,
      remedy: 'set --manager-namespace to the namespace of the Leases of that manager',
    },
  ];
}

/** `3m ago: InvalidKubeconfig: …`. */
function eventText({ lastTimestamp, eventTime, reason = '', message = '' }: Event, nowMs: number): string {
  return `${ageOf(lastTimestamp ?? eventTime, nowMs)} ago: ${reason}: ${message.replace(/\.$/, '')}`;
}

/** Namespaces that this manager could have, and another one may have; of the one in question more is said. */
function unselectedFindings(told: readonly CellsInProgress[], but: string | undefined): readonly StatusFinding[] {
  const others = [...new Set(told.flatMap((one) => one.others ?? []))].filter((name) => name !== but).toSorted();
  if (others.length === 0) return [];
  const detail = `Machines of ${listed(others)} are not managed by this manager, because its selector does not match`;
  return [{ check: 'cells', status: 'ok', detail }];
}

/** Of which cells nobody speaks. */
function unknownFindings(told: readonly CellsInProgress[]): readonly StatusFinding[] {
  const [first] = told;
  const unknown = (first?.shards ?? 0) - new Set(told.flatMap((one) => one.held)).size;
  if (unknown <= 0) return [];
  const of = unknown === 1 ? '1 shard' : `${unknown} shards`;
  const remedy = 'check the pods of the manager; if they run elsewhere, set --url for each';
  return [
    {
      check: 'cells',
      status: 'warn',
      detail: `the cells of ${of} are not known: no process that holds them answered`,
      remedy,
    },
  ];
}

/** How all of them are but one, of which more is said. */
function otherFindings(states: readonly CellState[], but: string | undefined): readonly StatusFinding[] {
  const check = 'cells';
  const bad = states.filter(({ troubles }) => troubles.length > 0);
  if (states.length === 0) return [];
  if (bad.length === 0)
    return [
      { check, status: 'ok', detail: `${states.length === 1 ? '1 cell is' : `${states.length} cells are`} managed` },
    ];
  const others = bad.filter(({ cell }) => cell !== but);
  const refused = others.filter(({ state }) => state === 'refused');
  const running = others.filter(({ state }) => state === 'running');
  const found = (what: string, some: readonly CellState[]): readonly StatusFinding[] => {
    if (some.length === 0) return [];
    const detail = `${some.length} of ${states.length} cells ${what}: ${listed(some.map(({ cell }) => cell))}`;
    return [{ check, status: 'warn', detail, remedy: `set -n to one of them for the reason; see ${GUIDE}` }];
  };
  return [...found('not managed', refused), ...found('in trouble', running)];
}

/** What is true of a namespace: what the process says that manages it, and only without an answer what else there is to see. */
function namespaceFinding(facts: CellFacts, name: string, nowMs: number): StatusFinding {
  const { told, cellLeases, object, isMissing = false, lastEvent } = facts;
  const check = 'cells';
  if (isMissing && cellStateOf(told, name) === undefined) return missingFinding(name);
  const count = told[0]?.shards ?? (cellLeases === undefined ? 0 : shardCount(cellLeases, nowMs));
  const index = shardOf(name, Math.max(1, count));
  const lease = cellLeases?.shards.get(index);
  const isHeld = lease !== undefined && isRenewed(lease, nowMs);
  const holder = isHeld ? holderOf(lease) : undefined;
  const shard = isHeld ? `shard ${index}, held for ${ageOf(lease.spec?.acquireTime, nowMs)}` : `shard ${index}`;
  const state = cellStateOf(told, name);
  if (state !== undefined) {
    const why = troublesText(state);
    if (state.state === 'refused') {
      const detail = `${name} is not managed: ${why}`;
      return { check, status: 'fail', detail, remedy: `correct it: the cell starts at once; see ${GUIDE}` };
    }
    const detail = `${name} is managed${holder === undefined ? '' : ` by ${holder}`} (${shard})`;
    if (why === '') return { check, status: 'ok', detail };
    return { check, status: 'warn', detail: `${detail}; ${why}`, remedy: `see ${GUIDE}` };
  }
  const asked = told.find((one) => one.held.includes(index));
  if (asked === undefined) {
    const event = lastEvent === undefined ? '' : `; last Event, ${eventText(lastEvent, nowMs)}`;
    return {
      check,
      status: 'warn',
      detail: `${name} belongs to ${holder ?? 'a process'} (${shard}), which did not answer${event}`,
      remedy: 'check the pods of the manager; if they run elsewhere, set --url for each',
    };
  }
  const { selector, names } = asked;
  if (names?.includes(name) === true || (object !== undefined && names === undefined && isSelected(object, selector)))
    return { check, status: 'warn', detail: `${name} has yet to start (${shard})`, remedy: `see ${GUIDE}` };
  const isLeft = asked.others?.includes(name) === true;
  return {
    check,
    status: 'fail',
    detail: `${name} is not a cell of this manager${isLeft ? ', which does not manage its Machines; their VMs keep running' : ''}`,
    remedy: `${names === undefined ? `label it so that it matches --cells=${selector}` : 'add it to --cell-namespaces'}; if another manager has it, check --manager-namespace`,
  };
}

function missingFinding(name: string): StatusFinding {
  const detail = `namespace ${name} does not exist`;
  return { check: 'cells', status: 'fail', detail, remedy: 'set -n to a namespace of Machines' };
}

function isSelected({ metadata }: KubeObject, selector: string): boolean {
  try {
    return labelMatcher(parseSelector(selector))(metadata.labels);
  } catch (err) {
    // Of a newer process.
    if (err instanceof InvalidSelectorError) return false;
    throw err;
  }
}
