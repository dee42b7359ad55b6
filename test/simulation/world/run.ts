import { Life } from './life.ts';
import { MachinesWorld } from './machines-world.ts';
import { scriptOf, type ScriptLimits } from './script.ts';
import type { WorldKind } from '../worlds/kind.ts';
import { WORLDS } from '../worlds/worlds.ts';

/** What became of one seed. */
export interface RunResult {
  readonly seed: number;
  /** What must not be and was; empty: all is well. */
  readonly findings: readonly string[];
  readonly virtualMs: number;
  readonly requests: number;
  readonly vmsMade: number;
  readonly deaths: number;
  readonly digest: string;
  /** All that happened, where it is kept; else the end of it. */
  readonly trace: readonly string[];
}

const SHOWN = 100;

/** How a seed is run. */
export interface RunOptions extends ScriptLimits {
  readonly keepsTrace?: boolean;
  /** One finding is enough. */
  readonly endsWithFinding?: boolean;
}

/** Lets what lives in a world of a seed live and die, and tells what must not have happened. */
export async function run(seed: number, options: RunOptions = {}): Promise<RunResult> {
  const { keepsTrace = false, endsWithFinding = false } = options;
  const script = scriptOf(seed, options);
  await using world = await MachinesWorld.create({ ...script.world, keepsTrace });
  const kind: WorldKind = WORLDS[options.world ?? 'machines'];
  const population = await kind.populate(world, seed);
  const life = new Life(world, population, { seed, endsWithFinding });
  await life.live(script.phases);
  return {
    seed,
    findings: population.ledger.findings,
    virtualMs: world.time.elapsedMs,
    requests: world.processes.requests,
    vmsMade: population.ledger.vmsMade,
    deaths: life.deaths,
    digest: world.trace.digest(),
    trace: keepsTrace ? world.trace.lines : world.trace.latest(SHOWN),
  };
}
