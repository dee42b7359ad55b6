import { toTimestamp } from '../../../pkg/base/clock/clock.ts';
import type { MachineRow } from './machine-rows.ts';
import { cleaned } from './text.ts';
import type { PoolRow, TopView } from './view.ts';

/** Something that has changed, as it is logged. */
export interface Change {
  /** RFC 3339. */
  readonly time: string;
  /** `machine/NAME`, `pool/NAME`, `cluster`, … */
  readonly object: string;
  readonly namespace?: string;
  readonly isWarning: boolean;
  readonly text: string;
}

/** What has changed from one view to another; without one before, how everything is. */
export function changesBetween(before: TopView | undefined, after: TopView): readonly Change[] {
  const time = toTimestamp(after.nowMs);
  return [
    ...healthChanges(before, after),
    ...poolChanges(before, after),
    ...(before === undefined ? [overview(after)] : []),
    ...machineChanges(before, after),
    ...retryChanges(before, after),
    ...(before === undefined ? [] : eventChanges(before, after)),
  ].map((change) => ({ time, ...change, text: cleaned(change.text) }));
}

/** A change in one line. */
export function changeLine({ time, object, namespace, isWarning, text }: Change, allNamespaces: boolean): string {
  const where = allNamespaces && namespace !== undefined ? `${namespace}/` : '';
  return `${time} ${isWarning ? '!' : ' '} ${where}${object} ${text}`;
}

type Untimed = Omit<Change, 'time'>;

function healthChanges(before: TopView | undefined, after: TopView): readonly Untimed[] {
  const was = troublesIn(before);
  const is = troublesIn(after);
  const leaders = after.leaders.join(', ');
  const hasNewLeader = leaders !== '' && leaders !== before?.leaders.join(', ');
  return [
    ...(hasNewLeader ? [{ object: 'manager', isWarning: false, text: `leader ${leaders}` }] : []),
    ...[...is].filter(([key]) => !was.has(key)).map(([, text]) => ({ object: 'cluster', isWarning: true, text })),
    ...[...was]
      .filter(([key]) => !is.has(key))
      .map(([, text]) => ({ object: 'cluster', isWarning: false, text: `over: ${text}` })),
  ];
}

/** What is wrong; how long it has been so is no change. */
function troublesIn(view: TopView | undefined): ReadonlyMap<string, string> {
  const bad = (view?.health ?? []).filter(({ attention }) => attention !== 'ok');
  return new Map(bad.map(({ source, text }) => [source ?? text.replaceAll(/\b\d+[smhdy](?:\d+[smhd])?\b/g, ''), text]));
}

function poolChanges(before: TopView | undefined, { pools }: TopView): readonly Untimed[] {
  const key = ({ namespace, name }: PoolRow): string => `${namespace}/${name}`;
  const was = new Map((before?.pools ?? []).map((pool) => [key(pool), pool]));
  const is = new Set(pools.map(key));
  const changed = pools.filter((pool) => {
    const old = was.get(key(pool));
    return old === undefined || textOf(old) !== textOf(pool);
  });
  const gone = [...was.values()].filter((pool) => !is.has(key(pool)));
  return [
    ...changed.map((pool) => ({ ...poolObject(pool), isWarning: pool.attention === 'attention', text: textOf(pool) })),
    ...gone.map((pool) => ({ ...poolObject(pool), isWarning: false, text: 'deleted' })),
  ];
}

function poolObject({ namespace, name }: PoolRow): { readonly object: string; readonly namespace: string } {
  return { object: `pool/${name}`, namespace };
}

function textOf({ ready, desired, updated, trouble }: PoolRow): string {
  const newest = updated === undefined ? '' : `, ${updated} updated`;
  return `${ready}/${desired} ready${newest}${trouble === '' ? '' : `; ${trouble}`}`;
}

function overview({ rows, phases, needAttention }: TopView): Untimed {
  const counts = phases.map(({ phase, count }) => `${count} ${phase}`).join(', ');
  const text = `${rows.length} in total${counts === '' ? '' : `: ${counts}`}; ${needAttention} need attention`;
  return { object: 'machines', isWarning: needAttention > 0, text };
}

function machineChanges(before: TopView | undefined, { rows }: TopView): readonly Untimed[] {
  if (before === undefined)
    return rows.filter(({ attention }) => attention === 'attention').map((row) => machineChange(row, stateOf(row)));
  const was = new Map(before.rows.map((row) => [row.uid, row]));
  const is = new Set(rows.map(({ uid }) => uid));
  const changed = rows.flatMap((row) => {
    const old = was.get(row.uid);
    if (old === row) return [];
    if (old === undefined) return [machineChange(row, `created: ${stateOf(row)}`)];
    return old.phase === row.phase && old.reason === row.reason
      ? []
      : [machineChange(row, `${stateOf(old, false)} -> ${stateOf(row)}`)];
  });
  const gone = before.rows.filter(({ uid }) => !is.has(uid));
  return [...changed, ...gone.map((row) => ({ ...machineChange(row, 'deleted'), isWarning: false }))];
}

function machineChange(row: MachineRow, text: string): Untimed {
  return { object: `machine/${row.name}`, namespace: row.namespace, isWarning: row.attention === 'attention', text };
}

function stateOf({ phase, reason, message, attention }: MachineRow, withMessage: boolean = attention !== 'ok'): string {
  const state = phase === reason ? phase : `${phase} (${reason})`;
  return withMessage && message !== '' ? `${state}: ${message}` : state;
}

function retryChanges(before: TopView | undefined, { retries }: TopView): readonly Untimed[] {
  const key = ({ name, what, when }: TopView['retries'][number]): string =>
    `${name} ${what} ${when.replace(/ \((?:in \w+|now)\)/, '')}`;
  const was = new Set((before?.retries ?? []).map(key));
  return retries
    .filter((retry) => !was.has(key(retry)))
    .map(({ name, what, when, cause }) => ({
      object: name.startsWith('class ') ? name.replace(' ', '/') : `machine/${name}`,
      isWarning: false,
      text: `${what} failed; ${when}${cause === '' ? '' : `: ${cause}`}`,
    }));
}

function eventChanges(before: TopView, { events }: TopView): readonly Untimed[] {
  const key = ({ time, object, reason, message }: TopView['events'][number]): string =>
    [time, object, reason, message].join('\n');
  const was = new Set(before.events.map(key));
  return events
    .filter((event) => event.isWarning && !was.has(key(event)))
    .map(({ object, reason, message }) => ({
      object: object.replace(/^[^/]*/, (kind) => kind.toLowerCase()),
      isWarning: true,
      text: `Event ${reason}: ${message}`,
    }));
}
