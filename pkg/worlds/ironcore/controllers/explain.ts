import type { IronCoreMachine } from '../api/machine.ts';
import { readyCondition, type IronCoreMachinePool } from '../api/machine-pool.ts';
import type { IronCoreCondition } from '../api/reference.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { IRONCORE_SCHEDULER_LEASE } from './leases.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import { scheduledCondition } from './scheduled-condition.ts';
import type { GivenExplanation } from '../../../fleet/describe/described-explanation.ts';

/** What is known of the pool that a Machine has: it, that there is none of its name, or nothing. */
export type CachedPool = IronCoreMachinePool | 'missing' | 'unknown';

const NOTHING = 'Nothing.';

/** Explains a Machine of IronCore as it was read at `nowMs` (ms since the epoch), with the pool that it has. */
export function explainIronCoreMachine(machine: IronCoreMachine, pool: CachedPool, nowMs: number): GivenExplanation {
  const { reported, since } = stand(machine, pool);
  const sinceMs = fromTimestamp(since);
  return { ...reported, sinceMs: sinceMs === undefined ? undefined : Math.max(0, nowMs - sinceMs) };
}

interface MachineSituation {
  readonly reported: Omit<GivenExplanation, 'sinceMs'>;
  readonly since: string | undefined;
}

function stand(machine: IronCoreMachine, pool: CachedPool): MachineSituation {
  const { spec, status, metadata } = machine;
  const name = spec.machinePoolRef?.name ?? '';
  const lost = name === '' ? undefined : poolTrouble(name, pool);
  if (isBeingDeleted(machine)) return { reported: deleting(machine, lost), since: metadata.deletionTimestamp };
  const scheduled = scheduledCondition(machine);
  if (name === '')
    return { reported: unplaced(scheduled), since: scheduled?.lastTransitionTime ?? metadata.creationTimestamp };
  const { state = '' } = status ?? {};
  const isOff = spec.power === 'Off' && state === 'Shutdown';
  const asWanted = isOff || (spec.power !== 'Off' && state === 'Running');
  // One that is switched off is not ready, and waits for nothing.
  const isWait = ({ type, reason }: IronCoreCondition): boolean =>
    !(isOff && type === 'Ready' && reason === 'NotReady');
  // What the runtime refuses leaves a machine as ready as it was.
  const isTrouble = (one: IronCoreCondition): boolean => one.status !== 'True' || one.reason === 'RuntimeRefused';
  const waits = (status?.conditions ?? []).filter((one) => isTrouble(one) && one !== scheduled && isWait(one));
  const first = mostTelling(waits);
  if (lost !== undefined)
    return { reported: { ...lost, message: `${lost.message} ${shownState(state)}` }, since: sinceOf(pool) };
  if (asWanted && first === undefined) {
    const message = `The Machine is ${state} in pool ${name}.`;
    return {
      reported: { reason: state, message, waitingFor: undefined, nextStep: NOTHING },
      since: conditionOf(status?.conditions, 'Ready')?.lastTransitionTime,
    };
  }
  if (first === undefined) return { reported: starting(name, state), since: metadata.creationTimestamp };
  return { reported: waiting(first, state), since: first.lastTransitionTime };
}

/** What the others wait for is part of what Ready says: one of them, unless Ready says more. */
function mostTelling(waits: readonly IronCoreCondition[]): IronCoreCondition | undefined {
  const ready = waits.find(({ type }) => type === 'Ready');
  const other = waits.find(({ type }) => type !== 'Ready');
  if (other === undefined || ready === undefined) return other ?? ready;
  const saysMore = other.message !== '' && ready.message !== other.message && ready.message.includes(other.message);
  return saysMore ? ready : other;
}

const GOES = 'The object is removed when the pool has deleted the machine and removed its finalizer.';
const DOUBT = { waitingFor: 'the missing machines of the pool to be found, or given up', nextStep: GOES };
const ASKED = 'The request is retried, at least once a minute.';

/** Reasons for which the deletion of a Machine does not go on, although its pool is ready: what it waits for then, and what happens next. */
const HINDRANCES: ReadonlyMap<string, Pick<MachineSituation['reported'], 'waitingFor' | 'nextStep'>> = new Map([
  ['WrongRuntime', DOUBT],
  ['MachinesLost', DOUBT],
  ['RuntimeRefused', { waitingFor: 'the runtime of the pool to accept the deletion', nextStep: ASKED }],
  ['RuntimeUnreachable', { waitingFor: 'the runtime of the pool to answer', nextStep: ASKED }],
  ['ApiServerRefused', { waitingFor: 'the API server to accept the update', nextStep: ASKED }],
]);

function deleting(
  { metadata, status }: IronCoreMachine,
  lost: MachineSituation['reported'] | undefined,
): MachineSituation['reported'] {
  const held = (metadata.finalizers ?? []).join(', ');
  const state = shownState(status?.state ?? '');
  const ready = conditionOf(status?.conditions, 'Ready');
  const hindrance = HINDRANCES.get(ready?.reason ?? '');
  if (lost === undefined && ready !== undefined && hindrance !== undefined) {
    return { reason: ready.reason, message: `The Machine is being deleted. ${sentence(ready.message)}`, ...hindrance };
  }
  return {
    reason: 'Deleting',
    message: ['The Machine is being deleted.', ...(lost === undefined ? [] : [lost.message]), state].join(' '),
    waitingFor: held === '' ? undefined : `finalizers ${held}`,
    nextStep: held === '' ? 'The object is removed.' : GOES,
  };
}

function unplaced(scheduled: IronCoreCondition | undefined): MachineSituation['reported'] {
  if (scheduled === undefined) {
    return {
      reason: 'NotLookedAt',
      message: 'The Machine has no pool, and no scheduler has reported why.',
      waitingFor: 'a scheduler to place the Machine',
      nextStep:
        'Check that a scheduler is running: machinist run --controllers=*,ironcore, which places Machines of all namespaces, or that of IronCore. ' +
        `Lease ${IRONCORE_SCHEDULER_LEASE} in the namespace of its --namespace names the process.`,
    };
  }
  return {
    reason: scheduled.reason,
    message: `The Machine has no pool: ${scheduled.message}.`,
    waitingFor: 'a ready pool that matches the Machine and has capacity',
    nextStep: 'The Machine is placed as soon as there is one; pools are checked again every minute.',
  };
}

function poolTrouble(name: string, pool: CachedPool): MachineSituation['reported'] | undefined {
  if (pool === 'unknown') return undefined;
  if (pool === 'missing') {
    return {
      reason: 'PoolMissing',
      message: `MachinePool ${name} does not exist.`,
      waitingFor: `MachinePool ${name}`,
      nextStep: 'Create the pool, or delete the Machine; the pool of a Machine cannot be changed.',
    };
  }
  const ready = readyCondition(pool);
  if (ready?.status === 'True') return undefined;
  const why = ready === undefined ? 'no readiness has been reported' : `${ready.reason}: ${ready.message}`;
  return {
    reason: 'PoolNotReady',
    message: `MachinePool ${name} is not ready (${why}).`,
    waitingFor: `MachinePool ${name} to be ready`,
    nextStep: 'The Machine stays as it is until its pool answers again.',
  };
}

function starting(pool: string, state: string): MachineSituation['reported'] {
  return {
    reason: state === '' ? 'Placed' : state,
    message: `The Machine is in pool ${pool}. ${shownState(state)}`,
    waitingFor: 'the pool to report the state',
    nextStep: 'The pool creates the machine and reports its state.',
  };
}

function waiting({ type, reason, message }: IronCoreCondition, state: string): MachineSituation['reported'] {
  return {
    reason,
    message: `${message === '' ? `Condition ${type} is not True.` : sentence(message)} ${shownState(state)}`,
    waitingFor: `condition ${type}`,
    nextStep: 'The Machine continues as soon as the problem is resolved.',
  };
}

function sentence(message: string): string {
  return `${message.replace(/\.$/, '')}.`;
}

function shownState(state: string): string {
  return state === '' ? 'No state has been reported yet.' : `Its state is ${state}.`;
}

function sinceOf(pool: CachedPool): string | undefined {
  return typeof pool === 'string' ? undefined : readyCondition(pool)?.lastTransitionTime;
}
