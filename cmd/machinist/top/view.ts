import type { Event, Lease } from '../../../pkg/apis/wire.ts';
import { fromTimestamp, toTimestamp } from '../../../pkg/base/clock/clock.ts';
import { humanDuration } from '../../../pkg/fleet/human-duration.ts';
import { cellFindings, leaderFindings } from '../status/cell-findings.ts';
import { cellsOf, NO_PROCESS, processFindings, type StatusFinding } from '../status/findings.ts';
import type { OpenDrain } from '../../../pkg/health/work-in-progress.ts';
import type { Attention } from '../../../pkg/fleet/attention.ts';
import { treeOf } from '../../../pkg/fleet/tree.ts';
import type { SourceTrouble, TopFacts } from './facts.ts';
import { type MachineRow, type MachineRows } from './machine-rows.ts';
import { shortTexts } from './short-texts.ts';

/** A MachineDeployment, or a MachineSet that has none. */
export interface PoolRow {
  readonly name: string;
  readonly namespace: string;
  readonly desired: number;
  readonly ready: number;
  /** Machines of the newest revision; undefined of a MachineSet. */
  readonly updated: number | undefined;
  readonly attention: Attention;
  /** What keeps it from being as requested; empty when nothing does. */
  readonly trouble: string;
}

/** A drain under way. Times are RFC 3339. */
export interface DrainRow {
  readonly key: string;
  readonly name: string;
  readonly purpose: string;
  readonly isBlocked: boolean;
  readonly message: string;
  /** `pods deleted at 23:27:14`, and in how long: ` (in 40s)`. */
  readonly until: string;
  readonly inText: string;
}

/** A call that is repeated, or a class that waits. */
export interface RetryRow {
  readonly name: string;
  readonly what: string;
  readonly cause: string;
  readonly when: string;
}

/** A line of the log of Events. */
export interface EventRow {
  readonly time: string;
  readonly isWarning: boolean;
  readonly reason: string;
  readonly object: string;
  readonly message: string;
}

/** What the screen shows, before it is known how large it is. */
export interface TopView {
  readonly nowMs: number;
  readonly title: string;
  /** Who leads, and how the processes, drivers and clusters are: those that are well in a word each. */
  readonly health: readonly {
    readonly attention: Attention;
    /** What cannot be read, if that is what is wrong: it stays the same whatever the text says of it. */
    readonly source?: string;
    readonly text: string;
  }[];
  /** Those that hold a Lease. */
  readonly leaders: readonly string[];
  readonly pools: readonly PoolRow[];
  /** The most frequent first. */
  readonly phases: readonly { readonly phase: string; readonly count: number }[];
  readonly needAttention: number;
  readonly drains: readonly DrainRow[];
  readonly retries: readonly RetryRow[];
  readonly rows: readonly MachineRow[];
  /** Oldest first. */
  readonly events: readonly EventRow[];
  readonly isComplete: boolean;
}

/** What there is to see of `facts`. `version`: of this program. */
export function viewOf(facts: TopFacts, rows: MachineRows, version: string): TopView {
  const { nowMs, cluster, namespace, isComplete } = facts;
  const machines = rows.of(facts);
  const counts = Map.groupBy(machines, ({ phase }) => phase);
  const around: Omit<TopView, 'rows'> = {
    nowMs,
    title: `${cluster} · ${namespace === undefined ? 'all namespaces' : `namespace ${namespace}`}`,
    health: healthOf(facts, version),
    leaders: [...leadersOf(leasesOf(facts), nowMs).keys()],
    pools: poolsOf(facts),
    phases: [...counts]
      .map(([phase, { length }]) => ({ phase, count: length }))
      .toSorted((a, b) => b.count - a.count || (a.phase < b.phase ? -1 : 1)),
    needAttention: machines.filter(({ attention }) => attention === 'attention').length,
    drains: drainRowsOf(facts, machines),
    retries: retryRowsOf(facts, machines),
    events: facts.events.map(eventRowOf),
    isComplete,
  };
  return { ...shortTexts(around), rows: machines };
}

/** A time of today, as people say it: `23:27:14`. */
export function timeOfDay(timestamp: string | undefined): string {
  const ms = fromTimestamp(timestamp);
  return ms === undefined ? '' : toTimestamp(ms).slice(11, 19);
}

/** When something happens: `23:27:14 (in 40s)`. */
function whenText(timestamp: string, nowMs: number): string {
  return `${timeOfDay(timestamp)}${inTime(timestamp, nowMs)}`;
}

function inTime(timestamp: string, nowMs: number): string {
  const inMs = (fromTimestamp(timestamp) ?? nowMs) - nowMs;
  return ` (${inMs > 0 ? `in ${humanDuration(inMs)}` : 'now'})`;
}

type Health = TopView['health'][number];

function healthOf(facts: TopFacts, version: string): readonly Health[] {
  const { answers, nowMs, troubles } = facts;
  const isUnreachable = troubles.some(({ what }) => what === API_SERVER);
  const findings = [
    // What is known of them is old.
    ...(isUnreachable || !facts.isComplete ? [] : [...whoLeads(facts), ...howCellsAre(facts)]),
    ...(answers === undefined || isUnreachable || troubles.some(({ what }) => what === MANAGER_PODS)
      ? []
      : answers.length === 0
        ? [NO_PROCESS]
        : processFindings(answers, version, nowMs)),
  ];
  const bad = findings.filter(({ status }) => status !== 'ok');
  return [
    ...troubles.map((trouble): Health => ({
      attention: 'attention',
      source: trouble.what,
      text: troubleOf(trouble, facts),
    })),
    ...summary(findings, facts, isUnreachable),
    ...bad.map((one): Health => ({
      attention: 'attention',
      // An option of this command would help.
      text: one.remedy?.startsWith('set --') === true ? `${one.detail}; ${one.remedy}` : one.detail,
    })),
  ];
}

/** How the pods of the manager are called. */
export const MANAGER_PODS = 'pods of the manager';

/** How the API server of the control cluster is called. */
export const API_SERVER = 'API server';

function troubleOf({ what, sinceMs, message, isRefused }: SourceTrouble, { nowMs, isComplete }: TopFacts): string {
  if (isRefused) return `${what} cannot be read: ${message}`;
  const shown = isComplete ? 'what is shown is from then' : 'nothing has been read yet';
  return `${what}: no answer since ${timeOfDay(toTimestamp(sinceMs))} (${humanDuration(nowMs - sinceMs)}); ${shown}. ${message}`;
}

function whoLeads(facts: TopFacts): readonly StatusFinding[] {
  const { answers = [], nowMs, troubles } = facts;
  return troubles.some(({ what }) => what === 'leases') ? [] : leaderFindings(facts, cellsOf(answers), nowMs);
}

function howCellsAre({ answers, cellLeases, cell, namespace, isOfManager, nowMs }: TopFacts): readonly StatusFinding[] {
  // Until they were asked, nothing is said of what they would answer.
  if (answers === undefined) return [];
  const told = cellsOf(answers);
  if (told.length === 0 && cellLeases === undefined) return [];
  const asked = isOfManager === true ? undefined : namespace;
  return cellFindings({ told, cellLeases, namespace: asked, object: cell }, nowMs);
}

/** Those under which somebody works: of a manager with cells, those of the shards. */
function leasesOf({ leases, cellLeases }: TopFacts): readonly Lease[] {
  return cellLeases === undefined ? leases : [...cellLeases.shards.values()];
}

/** In one line, what is as it should be. */
function summary(
  findings: readonly StatusFinding[],
  { leases, cellLeases, nowMs }: TopFacts,
  isUnreachable: boolean,
): readonly Health[] {
  const isWell = (check: StatusFinding['check']): boolean =>
    findings.some((one) => one.check === check) && findings.every((one) => one.check !== check || one.status === 'ok');
  const wellOf = (check: StatusFinding['check']): readonly string[] =>
    findings.flatMap((one) => (one.check === check && one.status === 'ok' ? [one.detail] : []));
  const parts = [
    ...(cellLeases === undefined ? [] : wellOf('leaders')),
    ...[...leadersOf(isUnreachable ? [] : leases, nowMs)].map(
      ([holder, sinceMs]) => `leader ${holder} for ${humanDuration(sinceMs)}`,
    ),
    ...wellOf('cells'),
    ...wellOf('drivers').map((detail) => `driver ${detail}`),
    ...(isWell('clusters') ? ['clusters reachable'] : []),
    ...(isWell('zones') ? ['no zone stopped'] : []),
    // One that is only about to fire for hours says nothing that the list does not.
    ...(isWell('alerts') ? ['no alert'] : []),
  ];
  return parts.length === 0 ? [] : [{ attention: 'ok', text: parts.join(' · ') }];
}

/** For how long each of them has led. */
function leadersOf(leases: readonly Lease[], nowMs: number): ReadonlyMap<string, number> {
  const led = leases.flatMap(({ spec }) => {
    const { holderIdentity = '', acquireTime, renewTime, leaseDurationSeconds = 0 } = spec ?? {};
    const isRenewed = nowMs - (fromTimestamp(renewTime) ?? 0) <= 2 * leaseDurationSeconds * 1_000;
    const sinceMs = Math.max(0, nowMs - (fromTimestamp(acquireTime) ?? nowMs));
    return holderIdentity === '' || !isRenewed ? [] : [[holderIdentity, sinceMs] as const];
  });
  return new Map(led);
}

function poolsOf({ deployments, sets, nowMs }: TopFacts): readonly PoolRow[] {
  const updated = new Map(
    deployments.map(({ metadata, status }) => [
      `${metadata.namespace ?? ''}/${metadata.name}`,
      status?.updatedReplicas ?? 0,
    ]),
  );
  return treeOf({ deployments, sets, machines: [] }, nowMs).flatMap((node): PoolRow[] => {
    if (node.kind === 'Machine') return [];
    const { name, namespace, replicas = { desired: 0, ready: 0 }, troubles = [], children } = node;
    const isDeployment = node.kind === 'MachineDeployment';
    const all = [
      ...troubles.map(({ text }) => text),
      ...children.flatMap((set) => (set.troubles ?? []).map(({ text }) => `${set.name}: ${text}`)),
    ];
    const [first = ''] = all;
    const { desired, ready } = replicas;
    // Its machines were left out above.
    const attention = isDeployment
      ? node.attention
      : troubles.length > 0
        ? 'attention'
        : desired === ready
          ? 'ok'
          : 'progressing';
    return [
      {
        name,
        namespace,
        desired,
        ready,
        updated: isDeployment ? (updated.get(`${namespace}/${name}`) ?? 0) : undefined,
        attention,
        trouble: all.length > 1 ? `${first} (and ${all.length - 1} more)` : first,
      },
    ];
  });
}

const DRAINING: ReadonlySet<string> = new Set(['Draining', 'DrainBlocked', 'DrainFailed', 'DrainingForUpdate']);

function drainRowsOf({ work, nowMs }: TopFacts, rows: readonly MachineRow[]): readonly DrainRow[] {
  const drains = work.flatMap((one) => one.drains);
  const known = new Set(drains.map(({ machine }) => machine));
  return [
    ...drains.map(({ machine, purpose, isBlocked, message = '', ...drain }): DrainRow => {
      return { key: machine, name: nameOf(machine), purpose, isBlocked, message, ...endOfDrain(drain, nowMs) };
    }),
    // What Machines say themselves, where no process answers.
    ...rows
      .filter(({ key, reason }) => DRAINING.has(reason) && !known.has(key))
      .map(({ key, name, phase, attention, message }): DrainRow => ({
        key,
        name,
        purpose: phase === 'Terminating' ? 'deletion' : 'in-place-update',
        isBlocked: attention === 'attention',
        message,
        until: '',
        inText: '',
      })),
  ].toSorted((a, b) => Number(b.isBlocked) - Number(a.isBlocked) || (a.key < b.key ? -1 : 1));
}

function endOfDrain(
  {
    podsDeletedAt,
    forcedBy,
    nextAttempt,
    since,
  }: Pick<OpenDrain, 'podsDeletedAt' | 'forcedBy' | 'nextAttempt' | 'since'>,
  nowMs: number,
): Pick<DrainRow, 'until' | 'inText'> {
  if (nextAttempt !== undefined)
    return { until: `next attempt at ${timeOfDay(nextAttempt)}`, inText: inTime(nextAttempt, nowMs) };
  if (podsDeletedAt !== undefined)
    return { until: `pods deleted at ${timeOfDay(podsDeletedAt)}`, inText: inTime(podsDeletedAt, nowMs) };
  return { until: forcedBy === undefined ? `since ${timeOfDay(since)}` : `pods are deleted: ${forcedBy}`, inText: '' };
}

function retryRowsOf({ work, nowMs }: TopFacts, rows: readonly MachineRow[]): readonly RetryRow[] {
  const byKey = new Map(rows.map((row) => [row.key, row]));
  const exhausted = work.flatMap((one) => one.exhausted);
  const waits = new Map(exhausted.map(({ machineClass, nextAttempt }) => [machineClass, nextAttempt]));
  const classes = exhausted.map(({ machineClass, message, failures, nextAttempt }): RetryRow => ({
    name: `class ${nameOf(machineClass)}`,
    what: 'create',
    cause: message,
    when: `next attempt at ${whenText(nextAttempt, nowMs)}, the ${ordinal(failures + 1)}; all its machines wait`,
  }));
  const calls = work
    .flatMap((one) => one.retries)
    .toSorted((a, b) => (a.nextAttempt < b.nextAttempt ? -1 : 1))
    .map(({ machine, call, code, message, failures, nextAttempt }): RetryRow => {
      const row = byKey.get(machine);
      const ofClass =
        row !== undefined && call === 'create' ? waits.get(`${row.namespace}/${row.machineClass}`) : undefined;
      const at = ofClass !== undefined && ofClass > nextAttempt ? ofClass : nextAttempt;
      const wait = ofClass === undefined ? '' : `; class ${row?.machineClass ?? ''} waits for all`;
      const end = row?.failsAt === undefined ? '' : ` · ${failureText(row.failsAt, at)}`;
      return {
        name: nameOf(machine),
        what: call,
        cause: [code, message].filter((part) => part !== undefined && part !== '').join(': '),
        when: `next attempt at ${whenText(at, nowMs)}, the ${ordinal(failures + 1)}${wait}${end}`,
      };
    });
  return [...classes, ...calls];
}

/** When a machine becomes Failed; `nextAt`: when it is tried again, which may be too late. */
function failureText(failsAt: string, nextAt: string): string {
  return `becomes Failed at ${timeOfDay(failsAt)}${failsAt < nextAt ? ', before that' : ''}`;
}

/** `1st`, `2nd`, `3rd`, `4th`. */
export function ordinal(n: number): string {
  const tens = n % 100;
  const suffix = tens >= 11 && tens <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th');
  return `${n}${suffix}`;
}

/** The time of an Event, of its last occurrence. */
export function timeOfEvent({ lastTimestamp, eventTime, firstTimestamp, metadata }: Event): string {
  return lastTimestamp ?? eventTime ?? firstTimestamp ?? metadata.creationTimestamp ?? '';
}

function eventRowOf(event: Event): EventRow {
  const { type, reason = '', message = '', count = 1, involvedObject } = event;
  const { kind = '', name = '' } = involvedObject;
  return {
    time: timeOfDay(timeOfEvent(event)),
    isWarning: type === 'Warning',
    reason,
    object: `${kind}/${name}`,
    message: count > 1 ? `${message.trim()} (x${count})` : message.trim(),
  };
}

function nameOf(key: string): string {
  return key.slice(key.indexOf('/') + 1);
}
