import { CrashPoint, type Point } from './crash-point.ts';
import { InProcessManager } from './manager.ts';
import { Pool } from './pool.ts';
import { SimulatedCloud } from './sim-cloud.ts';
import type { Site } from './site.ts';
import { Succession } from './succession.ts';

/** What a pool lives through. */
export interface Plan {
  readonly replicas: number;
  /** How often all machines are replaced. */
  readonly rolls: number;
}

/** A life with one fault in it, and what came of it. */
export interface Life {
  readonly n: number;
  readonly point: Point;
  /** The n-th mutation; undefined when there were fewer. */
  readonly hit: string | undefined;
  /** Mutations of the first incarnation, and what they were. */
  readonly mutations: number;
  readonly texts: readonly string[];
  /** Why the pool did not come to its end; undefined when it did. */
  readonly failure: string | undefined;
  /** VMs ever made, and machines that had two at once. */
  readonly vmsCreated: number;
  readonly doubled: readonly string[];
  readonly creations: number;
  readonly deletions: number;
}

/**
 * Takes a pool from its creation to its deletion while the n-th mutation of its first manager goes wrong; when that one dies
 * a second one takes over, and nobody else helps.
 */
export async function liveThrough(site: Site, plan: Plan, n: number, point: Point): Promise<Life> {
  await using cloud = await SimulatedCloud.start({ site });
  await using pool = await Pool.create({ site, cloud, replicas: plan.replicas });
  const crash = new CrashPoint(n, point);
  const hooks = { intercept: crash.intercept, interceptDriver: crash.intercept };
  await using managers = await Succession.start(
    crash,
    () => InProcessManager.start({ ...pool.access, hooks }),
    () => InProcessManager.start(pool.access),
  );
  const failure = await Promise.race([run(pool, plan), managers.failed]).then(
    () => undefined,
    (err: unknown) => (err instanceof Error ? err.message : String(err)),
  );
  const { calls, created, doubled } = cloud;
  return {
    n,
    point,
    hit: crash.texts[n - 1],
    mutations: crash.texts.length,
    texts: crash.texts,
    failure,
    vmsCreated: created.length,
    doubled: [...doubled],
    creations: calls['CreateMachine'] ?? 0,
    deletions: calls['DeleteMachine'] ?? 0,
  };
}

async function run(pool: Pool, { replicas, rolls }: Plan): Promise<void> {
  await pool.untilUp(replicas);
  for (let roll = 1; roll <= rolls; roll++) {
    await pool.roll(String(roll));
    await pool.untilUp(replicas);
  }
  await pool.delete();
  await pool.untilGone();
}
