import { createHash } from 'node:crypto';

import { DRIVER_CODES, DriverError, type DriverCode } from '../../../pkg/driver/error.ts';

/** Methods that can go wrong. */
export const METHODS = [
  'CreateMachine',
  'InitializeMachine',
  'GetMachineStatus',
  'DeleteMachine',
  'ListMachines',
  'GetVolumeIDs',
] as const;

/** One of the methods above. */
export type DriverMethod = (typeof METHODS)[number];

/**
 * What goes wrong.
 * fail: answers `code`, nothing happened. fail-after: it happened, and answers `code` all the same. hang: never answers and
 * does nothing. late: it happened, the answer comes `delayMs` later. delayed: a creation never answers, and makes its VM `delayMs` after it
 * was asked for, also if it has been given up by then. forget: it happened, then the VM vanishes.
 * duplicate: a creation makes another VM although there is one. stale: a read shows what was `delayMs` ago. other-id: VMs are
 * named by provider ids of another form, which every method understands too. other: it happened, and a creation or a look answers with
 * the VM of another machine, the newest that has joined. mixed-up: it happened, and a creation or a look answers with the provider id of
 * another machine's VM, the newest, which need not have joined, and the Node name of its own.
 */
export const EFFECTS = [
  'fail',
  'fail-after',
  'hang',
  'late',
  'delayed',
  'forget',
  'duplicate',
  'stale',
  'other-id',
  'other',
  'mixed-up',
] as const;

/** One of the effects above. */
export type Effect = (typeof EFFECTS)[number];

/** A rule; the first one that applies to a call decides. */
export interface FaultRule {
  readonly method: DriverMethod | '*';
  readonly effect: Effect;
  /** Share of calls, 0 to 1; 1 by default. */
  readonly probability?: number;
  /** How often it applies at most; unlimited by default. */
  readonly times?: number;
  /** Regular expression on the whole Machine name; all by default. */
  readonly machines?: string;
  /** For fail and fail-after; Internal by default. */
  readonly code?: DriverCode;
  readonly message?: string;
  readonly retryAfterMs?: number;
  readonly terminal?: boolean;
  readonly lastKnownState?: string;
  /** For late, delayed and stale; 1 s by default. */
  readonly delayMs?: number;
}

/**
 * Decides which calls go wrong. By seed: whether a rule of some probability applies to the n-th call for the m-th machine of a method
 * depends on nothing else, so a run can be repeated although calls overlap and machines have other names each time.
 */
export class Faults {
  readonly #seed: string;
  #rules: { readonly rule: FaultRule; readonly index: number; left: number }[] = [];
  readonly #attempts = new Map<string, number>();
  /** Machines of each method in the order of their first calls. */
  readonly #ordinals = new Map<DriverMethod, Map<string, number>>();

  constructor(seed: string) {
    this.#seed = seed;
  }

  get rules(): readonly FaultRule[] {
    return this.#rules.map(({ rule }) => rule);
  }

  /** Replaces all rules and forgets how many calls were made. */
  set(rules: readonly FaultRule[]): void {
    this.#rules = rules.map((rule, index) => ({ rule, index, left: rule.times ?? Infinity }));
    this.#attempts.clear();
    this.#ordinals.clear();
  }

  /** The rule that applies to this call, if any. `machine` is empty for lists and volumes. */
  next(method: DriverMethod, machine: string): FaultRule | undefined {
    if (this.#rules.length === 0) return undefined;
    const key = `${method}/${this.#ordinalOf(method, machine)}`;
    const attempt = (this.#attempts.get(key) ?? 0) + 1;
    this.#attempts.set(key, attempt);
    const found = this.#rules.find(
      ({ rule, index, left }) =>
        left > 0 &&
        (rule.method === '*' || rule.method === method) &&
        (rule.machines === undefined || new RegExp(`^(?:${rule.machines})$`).test(machine)) &&
        this.#chance(`${index}/${key}/${attempt}`) < (rule.probability ?? 1),
    );
    if (found === undefined) return undefined;
    found.left--;
    return found.rule;
  }

  #ordinalOf(method: DriverMethod, machine: string): number {
    const known = this.#ordinals.get(method) ?? new Map<string, number>();
    this.#ordinals.set(method, known);
    const ordinal = known.get(machine) ?? known.size;
    known.set(machine, ordinal);
    return ordinal;
  }

  #chance(what: string): number {
    return createHash('sha256').update(`${this.#seed}/${what}`).digest().readUIntBE(0, 6) / 2 ** 48;
  }
}

/** The failure that a rule asks for. */
export function simulatedError(rule: FaultRule): DriverError {
  const { code = 'Internal', message, retryAfterMs, terminal, lastKnownState } = rule;
  return new DriverError(code, message ?? `simulated ${code}`, {
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(terminal === undefined ? {} : { terminal }),
    ...(lastKnownState === undefined ? {} : { lastKnownState }),
  });
}

/** Checks rules that came as JSON. Throws InvalidArgument that names the member. */
export function parseFaultRules(value: unknown): readonly FaultRule[] {
  if (!Array.isArray(value)) throw new DriverError('InvalidArgument', 'faults: must be a list of rules');
  return value.map((rule: unknown, i) => parseRule(rule, `faults[${i}]`));
}

const CHECKS: Readonly<Record<keyof FaultRule, (value: unknown) => boolean>> = {
  method: (value) => value === '*' || METHODS.some((method) => method === value),
  effect: (value) => EFFECTS.some((effect) => effect === value),
  probability: (value) => typeof value === 'number' && value >= 0 && value <= 1,
  times: (value) => Number.isInteger(value) && Number(value) >= 0,
  machines: (value) => typeof value === 'string' && isPattern(value),
  code: (value) => DRIVER_CODES.some((code) => code === value),
  message: (value) => typeof value === 'string',
  retryAfterMs: (value) => typeof value === 'number' && value >= 0,
  terminal: (value) => typeof value === 'boolean',
  lastKnownState: (value) => typeof value === 'string',
  delayMs: (value) => typeof value === 'number' && value >= 0,
};

function parseRule(value: unknown, path: string): FaultRule {
  if (typeof value !== 'object' || value === null)
    throw new DriverError('InvalidArgument', `${path}: must be an object`);
  for (const [name, member] of Object.entries(value)) {
    if (!isRuleMember(name)) throw new DriverError('InvalidArgument', `${path}.${name}: unknown field`);
    if (!CHECKS[name](member)) throw new DriverError('InvalidArgument', `${path}.${name}: not allowed here`);
  }
  if (!('method' in value && 'effect' in value)) {
    throw new DriverError('InvalidArgument', `${path}: requires method and effect`);
  }
  return value as FaultRule; // every member was checked
}

function isRuleMember(name: string): name is keyof FaultRule {
  return Object.hasOwn(CHECKS, name);
}

function isPattern(value: string): boolean {
  try {
    return new RegExp(value) instanceof RegExp;
  } catch {
    return false;
  }
}
