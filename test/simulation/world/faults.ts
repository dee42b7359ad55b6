import { METHODS, type FaultRule } from '../../../packages/providers/sim/faults.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import { DRIVER_CODES, type DriverCode } from '../../../pkg/driver/error.ts';
import type { MachinesWorldOptions } from './machines-world.ts';
import { integerIn, oneOf } from './seeded-random.ts';
import { FINE, type FaultRates } from './weather.ts';

/** How bad it is for a while: each kind of fault is there or not, and at its own rate. */
export interface FaultPlan {
  readonly rates: FaultRates;
  readonly driver: readonly FaultRule[];
  /** Of each step, that a user acts right when the process changes something. */
  readonly encounter: number;
  /** Of each step, that the process dies. */
  readonly death: number;
  /** Of each step, that the process stands still while another one is started. */
  readonly pause: number;
  /** Of each step, that the API servers cannot be reached for a while. */
  readonly outage: number;
  /** Of each step, that a target cluster, and no other one, cannot be reached for a while. */
  readonly targetOutage: number;
  /** Of each step, that the control cluster is set back to a backup. */
  readonly setBack: number;
  /** Of each step, that the clock of the host jumps. */
  readonly jump: number;
  /** Of each step, that the process of the driver is started again. */
  readonly driverRestart: number;
  /** Of each step, that the host of a machine gets another name. */
  readonly renamed: number;
  readonly mishap: number;
  readonly act: number;
  /** What users do, where they do something: with few kinds of acts, little else may happen, and the bounds of it are close. */
  readonly acts: readonly string[];
  /** How long a step takes on average: hasty users meet what has just begun. */
  readonly stepMs: number;
}

const DRIVER_FAULTS: readonly FaultRule[] = [
  { method: '*', effect: 'fail', code: 'Internal' },
  { method: '*', effect: 'fail', code: 'Unavailable' },
  { method: 'CreateMachine', effect: 'fail', code: 'ResourceExhausted' },
  { method: 'CreateMachine', effect: 'fail-after', code: 'DeadlineExceeded' },
  { method: 'CreateMachine', effect: 'late', delayMs: 90_000 },
  { method: 'CreateMachine', effect: 'hang' },
  { method: 'CreateMachine', effect: 'forget' },
  { method: 'CreateMachine', effect: 'duplicate' },
  { method: 'DeleteMachine', effect: 'fail-after', code: 'DeadlineExceeded' },
  { method: 'DeleteMachine', effect: 'hang' },
  { method: 'ListMachines', effect: 'stale', delayMs: 600_000 },
  // Once: who says twice within minutes that there is no VM is believed.
  { method: 'GetMachineStatus', effect: 'stale', delayMs: 600_000, times: 1 },
  { method: 'ListMachines', effect: 'other-id' },
  { method: 'CreateMachine', effect: 'other' },
  { method: 'CreateMachine', effect: 'mixed-up' },
  { method: 'GetMachineStatus', effect: 'other' },
];

/** Codes with which a call can fail. */
const FAILURES: readonly DriverCode[] = DRIVER_CODES.filter((code) => code !== 'OK');
const CHANGES: ReadonlySet<string> = new Set(['CreateMachine', 'InitializeMachine', 'DeleteMachine']);
/** What leaves open whether CreateMachine has made a VM, as the contract has it. */
export const LEAVES_OPEN: ReadonlySet<DriverCode> = new Set([
  'Canceled',
  'Unknown',
  'DeadlineExceeded',
  'Aborted',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Uninitialized',
]);

/** Kinds of faults that can be left out of a life. */
export const FAULT_KINDS = [
  ...(Object.keys(FINE) as (keyof FaultRates)[]),
  'driver',
  'encounter',
  'death',
  'pause',
  'outage',
  'targetOutage',
  'setBack',
  'jump',
  'driverRestart',
  'renamed',
  'mishap',
  'act',
] as const;

/** One of the kinds above. */
export type FaultKind = (typeof FAULT_KINDS)[number];

/** Share of kinds of faults that are so frequent that two of them meet. */
const DENSE = 0.25;
/** By which those are denser. Watches break often enough. */
const DENSER = 4;
/** Of steps. */
const PACES_MS = [5_000, 15_000, 30_000, 45_000];

/** After a creation that was given up its VM may show for two minutes. */
const MOST_DELAY_MS = 115_000;

/** What a provider does that does not say what is not true. */
const HONEST: ReadonlySet<string> = new Set(['fail', 'fail-after', 'late', 'hang']);

/** What is drawn before that of which each has numbers of its own. */
interface Drawn extends Omit<FaultPlan, 'rates' | 'encounter' | 'driverRestart' | 'renamed' | 'targetOutage'> {
  readonly rates: Omit<FaultRates, 'refused403' | 'conflict409' | 'oldReads'>;
}

/** Share of the verbs on kinds that are forbidden: one kind of trouble of its own, of which most things can be done. */
export function drawForbidden(random: Random, without: readonly FaultKind[] = []): number {
  const drawn = random() < 0.3 ? 0.02 + random() * 0.15 : 0;
  return without.includes('refused403') ? 0 : drawn;
}

/** How often another writer is faster. */
export function drawConflicts(random: Random, without: readonly FaultKind[] = []): number {
  const drawn = random() < 0.3 ? random() * 0.15 * (random() < DENSE ? DENSER : 1) : 0;
  return without.includes('conflict409') ? 0 : drawn;
}

/** How often a cache of a server is behind that is asked for a list. */
export function drawOldReads(random: Random, without: readonly FaultKind[] = []): number {
  const drawn = random() < 0.35 ? 0.3 + random() * 0.7 : 0;
  return without.includes('oldReads') ? 0 : drawn;
}

/** How often users who act at all do so right when the process does. */
export function drawEncounters(random: Random, { act }: Pick<FaultPlan, 'act'>, without: readonly FaultKind[]): number {
  const drawn = random() < 0.4 ? random() : 0;
  return act === 0 || without.includes('encounter') ? 0 : drawn * 0.5;
}

/** How often the process of the driver is started again. */
export function drawDriverRestarts(random: Random, without: readonly FaultKind[] = []): number {
  const drawn = random() < 0.3 ? random() * 0.2 : 0;
  return without.includes('driverRestart') ? 0 : drawn;
}

/** How often the host of a machine gets another name. */
export function drawRenamed(random: Random, without: readonly FaultKind[] = []): number {
  const drawn = random() < 0.25 ? random() * 0.2 : 0;
  return without.includes('renamed') ? 0 : drawn;
}

/** How often a target cluster alone cannot be reached. */
export function drawTargetOutages(random: Random, without: readonly FaultKind[] = []): number {
  const drawn = random() < 0.5 ? 0.05 + random() * 0.25 : 0;
  return without.includes('targetOutage') ? 0 : drawn;
}

/** Rule by which VMs show that nobody waits for any more: within the time that a driver has for that. */
export function drawDelayedVMs(random: Random, without: readonly FaultKind[]): readonly FaultRule[] {
  const [isThere, probability, delayMs] = [random() < 0.4, random() * 0.6, random() * MOST_DELAY_MS];
  if (!isThere || without.includes('driver')) return [];
  return [{ method: 'CreateMachine', effect: 'delayed', delayMs: Math.round(delayMs), probability }];
}

/** Rules by which calls fail with any code of the contract; see `maySay`. */
export function drawCodes(
  random: Random,
  options: Pick<MachinesWorldOptions, 'isHonest' | 'idempotentCreate'>,
  without: readonly FaultKind[] = [],
): readonly FaultRule[] {
  const [isThere, count] = [random() < 0.4, integerIn(random, 1, 4)];
  const rules = Array.from({ length: count }, (): FaultRule => {
    const [method, code, isDone] = [oneOf(random, METHODS), oneOf(random, FAILURES), random() < 0.5];
    const probability = probabilityOf(random);
    return { method, effect: isDone && CHANGES.has(method) ? 'fail-after' : 'fail', code, probability };
  });
  if (!isThere || without.includes('driver')) return [];
  return rules.filter((rule) => maySay(rule, options));
}

/**
 * Whether a driver fails with a code of the contract, where that says more than that the call has failed.
 *
 * | method           | code                        | is said                                                           |
 * |------------------|-----------------------------|-------------------------------------------------------------------|
 * | CreateMachine    | any that says: no VM        | only by a call that has made none                                 |
 * | InitializeMachine| Unimplemented: nothing to do| only by a call that has done it                                   |
 * | InitializeMachine, DeleteMachine | NotFound    | by a call that has done nothing: only by drivers that lie         |
 * | GetMachineStatus | NotFound                    | never: by `stale`, once                                           |
 * | GetMachineStatus | OutOfRange, Unimplemented   | only by drivers that lie; the second not where it makes two VMs   |
 * | CreateMachine, GetMachineStatus | Uninitialized without a VM | only where creations may be repeated                |
 */
function maySay(
  { method, effect, code = 'Internal' }: FaultRule,
  { isHonest = false, idempotentCreate = true }: Pick<MachinesWorldOptions, 'isHonest' | 'idempotentCreate'>,
): boolean {
  const isDone = effect === 'fail-after';
  if (code === 'Uninitialized' && (method === 'CreateMachine' || method === 'GetMachineStatus'))
    return idempotentCreate;
  if (method === 'CreateMachine') return !isDone || LEAVES_OPEN.has(code);
  if (method === 'InitializeMachine' && code === 'Unimplemented') return isDone;
  if (method === 'InitializeMachine' || method === 'DeleteMachine') return isDone || code !== 'NotFound' || !isHonest;
  if (method !== 'GetMachineStatus') return true;
  if (code === 'Unimplemented') return !isHonest && idempotentCreate;
  return code !== 'NotFound' && !(isHonest && code === 'OutOfRange');
}

function probabilityOf(random: Random): number {
  return random() * 0.2 * (random() < DENSE ? DENSER : 1);
}

/** What the seed has in store for a while. */
export function drawPlan(
  random: Random,
  {
    acts: known,
    isHonest = false,
    without = [],
  }: {
    /** What users may do. */
    readonly acts: readonly string[];
    readonly isHonest?: boolean;
    readonly without?: readonly FaultKind[] | undefined;
  },
): Drawn {
  const rate = (kind: FaultKind, most: number, share = 0.4, denser = DENSER): number => {
    const drawn = random() < share ? random() * most * (random() < DENSE ? denser : 1) : 0;
    return without.includes(kind) ? 0 : Math.min(drawn, 1);
  };
  const lagMs = random() < 0.3 ? random() * 20_000 : 0;
  const rates: Drawn['rates'] = {
    requestLost: rate('requestLost', 0.08),
    answerLost: rate('answerLost', 0.08),
    refused429: rate('refused429', 0.05),
    refused500: rate('refused500', 0.05),
    slow: rate('slow', 0.05),
    watchCut: rate('watchCut', 0.5, 0.4, 1),
    watchForgotten: rate('watchForgotten', 0.3, 0.4, 1),
    watchSilent: rate('watchSilent', 0.2, 0.4, 1),
    watchLagMs: without.includes('watchLagMs') ? 0 : lagMs,
  };
  const driver = DRIVER_FAULTS.filter(() => random() < 0.3).map((rule) => ({
    ...rule,
    probability: probabilityOf(random),
  }));
  const acts = known.filter(() => random() < 0.4);
  const setBack = rate('setBack', isHonest ? 0 : 0.1, 0.2);
  const mayGoWrong = ({ effect, method }: FaultRule): boolean =>
    isHonest
      ? HONEST.has(effect)
      : // Of a VM whose Machine is forgotten both sources would say that it is another Machine's, and nobody could tell.
        !(setBack > 0 && method === 'GetMachineStatus' && effect === 'other');
  return {
    rates,
    driver: without.includes('driver') ? [] : driver.filter(mayGoWrong),
    death: rate('death', 0.15),
    pause: rate('pause', 0.1, 0.2),
    outage: rate('outage', 0.1, 0.2),
    setBack,
    jump: rate('jump', 0.1, 0.15),
    mishap: rate('mishap', 0.4),
    // Without any, each healthy machine that goes is one that nobody asked for.
    act: rate('act', 0.9, 0.7),
    acts: acts.length > 0 ? acts : [oneOf(random, known)],
    stepMs: oneOf(random, PACES_MS),
  };
}
