import type { Random } from '../../../pkg/base/random/random.ts';
import {
  drawCodes,
  drawConflicts,
  drawDelayedVMs,
  drawDriverRestarts,
  drawEncounters,
  drawForbidden,
  drawOldReads,
  drawRenamed,
  drawTargetOutages,
  drawPlan,
  type FaultKind,
  type FaultPlan,
} from './faults.ts';
import { drawInPlace, drawStrategy } from './acts.ts';
import type { MachinesWorldOptions } from './machines-world.ts';
import { integerIn, seededRandom } from './seeded-random.ts';
import type { WorldKind } from '../worlds/kind.ts';
import { WORLDS, type WorldName } from '../worlds/worlds.ts';

/** By which a life is made simpler than its seed has it. */
export interface ScriptLimits {
  /** The kind of world; `machines` unless it is given. */
  readonly world?: WorldName | undefined;
  /** Phases of trouble at most. */
  readonly phases?: number | undefined;
  /** Steps of each at most. */
  readonly steps?: number | undefined;
  /** Machines that are asked for at first, at most. */
  readonly replicas?: number | undefined;
  /** Kinds of faults that do not happen. */
  readonly without?: readonly FaultKind[] | undefined;
}

/** Trouble for a while. */
export interface Phase {
  readonly plan: FaultPlan;
  readonly steps: number;
  /** Whether what is left over is looked for after it. */
  readonly rests: boolean;
  /** It is in one of several places alone: as a share of all that there are. */
  readonly place?: number;
}

/** What is in store for a world, before anything happens in it. */
export interface Script {
  readonly world: MachinesWorldOptions;
  readonly phases: readonly Phase[];
}

/** Of most worlds: renewals are half of all requests else. */
const LONG_LEASES = {
  'leader-elect-lease-duration': '60s',
  'leader-elect-renew-deadline': '45s',
  'leader-elect-retry-period': '10s',
};
const NO_ORPHANS = { 'machine-safety-orphan-vms-period': '48h' };
const NO_ELECTION = { 'leader-elect': 'false' };

/** Share of the worlds whose cloud controller manager deletes Nodes. */
const DELETES_NODES = 0.25;
/** Share of the worlds whose users do more than change what is asked of their pool, and of their phases that have one kind of that. */
const HAS_OTHERS = 0.5;
const OTHER_ACT = 0.35;
/** Share of the worlds whose machines are updated in place, as long as nobody changes that. */
const IN_PLACE = 0.15;
/** Share of the troubles of a world with several places that are in one of them. */
const ONE_PLACE = 0.4;

/** What a seed has in store. */
export function scriptOf(seed: number, limits: ScriptLimits = {}): Script {
  const random = seededRandom(seed, 'world');
  const kind: WorldKind = WORLDS[limits.world ?? 'machines'];
  const drawn = random() < 0.35;
  const isHonest = kind.isHonest ?? drawn;
  const world: MachinesWorldOptions = {
    seed,
    hasTarget: random() < 0.3,
    replicas: Math.min(integerIn(random, 1, 8), limits.replicas ?? Infinity),
    flags: {
      ...(random() < 0.6 ? LONG_LEASES : random() < 0.25 ? NO_ELECTION : {}),
      ...(isHonest ? NO_ORPHANS : {}),
    },
    latencyMs: {
      list: integerIn(random, 200, 6_000),
      create: integerIn(random, 2_000, 90_000),
      delete: integerIn(random, 2_000, 40_000),
      join: integerIn(random, 5_000, 90_000),
    },
    strategy: random() < 0.5 ? drawStrategy(random) : undefined,
    isHonest,
    pods: random() < 0.4 ? podsOf(random) : undefined,
    otherNodeIDs: random() < 0.2,
    idempotentCreate: random() < 0.6,
    ...(kind === WORLDS.machines && joiningOf(seed)),
    ...(kind === WORLDS.machines && updatesOf(seed)),
    ...(kind === WORLDS.machines && { deletesNodes: seededRandom(seed, 'whose Nodes are deleted')() < DELETES_NODES }),
  };
  const phases = phasesOf(seed, world, limits);
  const isHarder = world.initializesVMs === true && limits.without?.includes('driver') !== true;
  return {
    world: kind.adapt(world, seededRandom(seed, 'kind of world')),
    phases: isHarder ? withoutInitialization(phases, seededRandom(seed, 'initialization')) : phases,
  };
}

/** How machines join; of numbers of its own, so that all else that a seed has in store stays the same. */
function joiningOf(seed: number): Pick<MachinesWorldOptions, 'initializesVMs' | 'initializesNodes'> {
  const random = seededRandom(seed, 'how machines join');
  return { initializesVMs: random() < 0.25, initializesNodes: random() < 0.25 };
}

/** Whether machines are updated in place from the beginning; of numbers of its own, too. */
function updatesOf(seed: number): Pick<MachinesWorldOptions, 'strategy'> {
  const random = seededRandom(seed, 'updates in place');
  return random() < IN_PLACE ? { strategy: drawInPlace(random) } : {};
}

/** Where VMs are to be initialized, that fails in some phases, mostly until their Nodes have joined. */
function withoutInitialization(phases: readonly Phase[], random: Random): Phase[] {
  return phases.map((phase) => {
    if (random() < 0.5) return phase;
    const rule = {
      method: 'InitializeMachine',
      effect: 'fail',
      code: 'Internal',
      probability: 0.5 + random() / 2,
    } as const;
    return { ...phase, plan: { ...phase.plan, driver: [...phase.plan.driver, rule] } };
  });
}

/** What else users do in the next phase: each kind of numbers of its own, so that with another kind the rest stays the same. */
function otherActsOf(seed: number, names: readonly string[] = []): () => readonly string[] {
  if (seededRandom(seed, 'what else users do')() >= HAS_OTHERS) return () => [];
  const streams = names.map((name) => ({ name, random: seededRandom(seed, `whether users do ${name}`) }));
  return () => streams.filter(({ random }) => random() < OTHER_ACT).map(({ name }) => name);
}

function podsOf(random: Random): MachinesWorldOptions['pods'] {
  const replicas = integerIn(random, 1, 12);
  return { replicas, maxUnavailable: integerIn(random, 1, 3), volumes: Math.max(0, integerIn(random, -3, 3)) };
}

function phasesOf(
  seed: number,
  { isHonest = false, idempotentCreate, hasTarget = false }: MachinesWorldOptions,
  { world = 'machines', phases = Infinity, steps = Infinity, without = [] }: ScriptLimits,
): Phase[] {
  const kind: WorldKind = WORLDS[world];
  const limits = { acts: kind.acts, isHonest, without: [...kind.without, ...without] };
  const plan = (): FaultPlan => {
    const drawn = drawPlan(random, limits);
    const rates = {
      ...drawn.rates,
      refused403: drawForbidden(forbids, limits.without),
      conflict409: drawConflicts(conflicts, limits.without),
      oldReads: drawOldReads(caches, limits.without),
    };
    const encounter = drawEncounters(encounters, drawn, limits.without);
    // Of a driver that makes no second VM the next call finds the first.
    const delayed = idempotentCreate === false ? drawDelayedVMs(delays, limits.without) : [];
    return {
      ...drawn,
      rates,
      encounter,
      driverRestart: drawDriverRestarts(restarts, limits.without),
      renamed: drawRenamed(renamed, limits.without),
      targetOutage: drawTargetOutages(targetOutages, hasTargets ? limits.without : ['targetOutage']),
      driver: [...drawn.driver, ...delayed, ...drawCodes(codes, provider, limits.without)],
      acts: [...new Set([...drawn.acts, ...kind.usual, ...others()])],
    };
  };
  const others = otherActsOf(seed, kind.others);
  const encounters = seededRandom(seed, 'encounters');
  const delays = seededRandom(seed, 'slow creations');
  const codes = seededRandom(seed, 'codes of drivers');
  const provider = { isHonest, idempotentCreate: idempotentCreate !== false };
  const restarts = seededRandom(seed, 'restarts of drivers');
  const caches = seededRandom(seed, 'old reads');
  const conflicts = seededRandom(seed, 'conflicts');
  const renamed = seededRandom(seed, 'renamed');
  const targetOutages = seededRandom(seed, 'targets out of reach');
  // Where there are several places, each has one.
  const hasTargets = hasTarget || kind.parts === true;
  const forbids = seededRandom(seed, 'forbidden verbs');
  const random = seededRandom(seed, 'plan');
  const count = Math.min(integerIn(random, 1, 3), phases);
  const places = seededRandom(seed, 'places of trouble');
  return Array.from({ length: count }, (_, i) => ({
    plan: plan(),
    steps: Math.min(integerIn(random, 5, 20), steps),
    rests: random() < 0.2 || i === count - 1,
    ...(kind.parts === true && places() < ONE_PLACE && { place: places() }),
  }));
}
