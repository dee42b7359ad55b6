import type { FaultRule } from '../../../packages/providers/sim/faults.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import { oneOf } from './seeded-random.ts';
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
  /** Of each step, that the control cluster is set back to a backup. */
  readonly setBack: number;
  /** Of each step, that the clock of the host jumps. */
  readonly jump: number;
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

/** Kinds of faults that can be left out of a life. */
export const FAULT_KINDS = [
  ...(Object.keys(FINE) as (keyof FaultRates)[]),
  'driver',
  'encounter',
  'death',
  'pause',
  'outage',
  'setBack',
  'jump',
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

/** What is drawn before roles, encounters and delayed VMs are. */
interface Drawn extends Omit<FaultPlan, 'rates' | 'encounter'> {
  readonly rates: Omit<FaultRates, 'refused403'>;
}

/** Share of the verbs on kinds that are forbidden: one kind of trouble of its own, of which most things can be done. */
export function drawForbidden(random: Random, without: readonly FaultKind[] = []): number {
  const drawn = random() < 0.3 ? 0.02 + random() * 0.15 : 0;
  return without.includes('refused403') ? 0 : drawn;
}

/** How often users who act at all do so right when the process does. */
export function drawEncounters(random: Random, { act }: Pick<FaultPlan, 'act'>, without: readonly FaultKind[]): number {
  const drawn = random() < 0.4 ? random() : 0;
  return act === 0 || without.includes('encounter') ? 0 : drawn * 0.5;
}

/** Rule by which VMs show that nobody waits for any more: within the time that a driver has for that. */
export function drawDelayedVMs(random: Random, without: readonly FaultKind[]): readonly FaultRule[] {
  const [isThere, probability, delayMs] = [random() < 0.4, random() * 0.6, random() * MOST_DELAY_MS];
  if (!isThere || without.includes('driver')) return [];
  return [{ method: 'CreateMachine', effect: 'delayed', delayMs: Math.round(delayMs), probability }];
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
  const rates: Omit<FaultRates, 'refused403'> = {
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
  const probability = (): number => random() * 0.2 * (random() < DENSE ? DENSER : 1);
  const driver = DRIVER_FAULTS.filter(() => random() < 0.3).map((rule) => ({ ...rule, probability: probability() }));
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
