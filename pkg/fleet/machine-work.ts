import { vmClassNameOf, providerIDOf } from '../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted, keyOf } from '../apis/meta.ts';
import type { WorkInProgress } from '../health/work-in-progress.ts';

/** What the manager is doing about a Machine at the moment, which the Machine does not record. Times are RFC 3339. */
export interface MachineWork {
  /** Calls and drains that have begun. */
  readonly running: readonly { readonly activity: string; readonly since: string; readonly isQueued: boolean }[];
  readonly nextAttempt?: {
    /** The call, or drain. */
    readonly of: string;
    readonly at: string;
    /** Its number, counted from 1 and from the last success. */
    readonly attempt: number;
    /** The MachineClass that all its Machines wait for. */
    readonly waitsForClass?: string;
  };
  /** When it becomes Failed, unless its VM is created, its Node joins, or becomes healthy before. */
  readonly failure?: { readonly at: string; readonly timeout: 'creation' | 'health' };
}

/** What of the work of all processes concerns a Machine; undefined when nothing does. */
export function workOfMachine(machine: Machine, all: readonly WorkInProgress[]): MachineWork | undefined {
  const key = keyOf(machine);
  const running = all
    .flatMap(({ activities }) => activities)
    .flatMap(({ machine: of, activity, since, isQueued }) => (of === key ? [{ activity, since, isQueued }] : []));
  const attempts = [...retriesOf(key, all), ...drainsOf(key, all)];
  const last = attempts.toSorted((a, b) => (a.at < b.at ? -1 : 1)).at(-1);
  const nextAttempt = withClass(machine, last, all);
  const failure = failureOf(key, all);
  if (running.length === 0 && nextAttempt === undefined && failure === undefined) return undefined;
  return { running, ...(nextAttempt !== undefined && { nextAttempt }), ...(failure !== undefined && { failure }) };
}

function failureOf(key: string, all: readonly WorkInProgress[]): MachineWork['failure'] {
  const deadline = all.flatMap(({ deadlines = [] }) => deadlines).find(({ machine }) => machine === key);
  return deadline && { at: deadline.failsAt, timeout: deadline.timeout };
}

type NextAttempt = NonNullable<MachineWork['nextAttempt']>;

function retriesOf(key: string, all: readonly WorkInProgress[]): NextAttempt[] {
  return all
    .flatMap(({ retries }) => retries)
    .flatMap(({ machine, call, nextAttempt: at, failures }) =>
      machine === key ? [{ of: call, at, attempt: failures + 1 }] : [],
    );
}

function drainsOf(key: string, all: readonly WorkInProgress[]): NextAttempt[] {
  return all
    .flatMap(({ drains }) => drains)
    .flatMap(({ machine, nextAttempt: at, failures }) =>
      machine === key && at !== undefined ? [{ of: 'drain', at, attempt: failures + 1 }] : [],
    );
}

/** A machine without a VM waits for its class as well, whether it has tried or not. */
function withClass(
  machine: Machine,
  own: NextAttempt | undefined,
  all: readonly WorkInProgress[],
): NextAttempt | undefined {
  if (providerIDOf(machine) !== '' || isBeingDeleted(machine)) return own;
  const name = vmClassNameOf(machine);
  const held = all
    .flatMap(({ exhausted }) => exhausted)
    .find(({ machineClass }) => machineClass === `${machine.metadata.namespace ?? ''}/${name}`);
  if (held === undefined) return own;
  const { of = 'create', attempt = 1, at = held.nextAttempt } = own ?? {};
  return { of, attempt, at: at > held.nextAttempt ? at : held.nextAttempt, waitsForClass: name };
}
