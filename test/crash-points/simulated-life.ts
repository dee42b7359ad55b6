import type { DriverMethod } from '../../packages/providers/sim/faults.ts';
import { HOUR } from '../durations.ts';
import type { Point } from '../cloud/crash-point.ts';
import type { Plan } from '../cloud/life.ts';
import { deleteMachine } from '../simulation/world/acts.ts';
import { MachinesWorld } from '../simulation/world/machines-world.ts';
import { Pool } from '../simulation/world/pool.ts';

const MINUTE_MS = 60_000;
const STEP_MS = 1_000;
/** Within this time a pool is as asked for, or gone. */
const PROGRESS_MS = 60 * MINUTE_MS;
/** How long it takes until a process that has ended is started again. */
const RESTART_MS = 3_000;
const CHANGES: ReadonlySet<DriverMethod> = new Set(['CreateMachine', 'InitializeMachine', 'DeleteMachine']);

/** What a pool lives through in a world. */
export interface SimulatedPlan extends Plan {
  /** Pods run on its Nodes, one of them with a volume, and a user deletes a Machine. */
  readonly drains?: boolean;
}

const PODS = { replicas: 3, maxUnavailable: 1, volumes: 1 };

/** What happens at a mutation. paused: the process stands still for longer than its Leases last, and another one takes its place. */
export const FATES = ['before', 'after', 'lost', 'paused'] as const satisfies readonly (Point | 'paused')[];

/** One of the fates above. */
export type Fate = (typeof FATES)[number];

/** A life in a simulated world with one fault in it, and what came of it. */
export interface SimulatedLife {
  readonly n: number;
  readonly fate: Fate;
  /** Whether there was an n-th mutation. */
  readonly isHit: boolean;
  /** What was asked for, mutation by mutation, of servers and of the driver. */
  readonly mutations: readonly string[];
  /** How many there were before a user deleted a Machine; 0 without. */
  readonly before: number;
  /** What must never be, and was. */
  readonly findings: readonly string[];
  readonly vmsCreated: number;
}

/** Takes a pool from its creation to its deletion in a world that is fine otherwise, while the n-th mutation goes wrong; with n = 0 none. */
export async function liveThrough(
  { replicas, rolls, drains = false }: SimulatedPlan,
  n: number,
  fate: Fate,
): Promise<SimulatedLife> {
  const flags = { 'leader-elect': String(fate === 'paused') };
  // A creation that is repeated blindly makes a second VM. Who waits for an answer that never comes may make one in its place.
  const idempotentCreate = fate === 'lost';
  await using world = await MachinesWorld.create({
    seed: 1,
    replicas,
    flags,
    idempotentCreate,
    ...(drains && { pods: PODS }),
  });
  if (!idempotentCreate) world.simulation.faults.set([{ method: 'CreateMachine', effect: 'duplicate' }]);
  const pool = new Pool(world);
  const mutations = new Mutations(world, fate === 'lost' ? n : 0);
  const blow = { after: n, countsChanges: true };
  if (n > 0 && (fate === 'before' || fate === 'after')) world.processes.death = { ...blow, how: fate };
  if (n > 0 && fate === 'paused') world.processes.pause = { ...blow, how: 2 * world.processes.leaseDurationMs };

  const until = async (what: string, isSo: () => boolean): Promise<void> => {
    const untilMs = world.time.elapsedMs + PROGRESS_MS;
    while (world.time.elapsedMs < untilMs && !isSo()) {
      await world.time.advance(STEP_MS, () => world.processes.running.length === 0 || world.processes.needsStandby);
      pool.ledger.look();
      if (world.processes.needsStandby) await world.processes.start();
      world.processes.needsStandby = false;
      if (world.processes.running.length > 0) continue;
      await world.time.advance(RESTART_MS);
      await world.processes.start();
    }
    if (!isSo()) pool.ledger.find(`the pool is not ${what}: ${pool.shown()}`);
  };
  for (let roll = 0; roll <= rolls; roll++) {
    if (roll > 0) world.changePool({ spec: { template: { metadata: { annotations: { roll: String(roll) } } } } });
    pool.expectProgress(PROGRESS_MS);
    await until('as asked for', () => pool.isAsAsked());
    pool.settle();
  }
  let before = 0;
  if (drains) {
    await until('full of pods', () => world.workload?.pods.length === PODS.replicas);
    before = mutations.texts.length;
    const [machine] = world.machines;
    if (machine !== undefined) deleteMachine(world, pool.ledger, machine.metadata.name);
    await until(
      'as asked for',
      () => world.machines.every(({ metadata }) => metadata.name !== machine?.metadata.name) && pool.isAsAsked(),
    );
    pool.settle();
  }
  pool.end();
  await until('gone', () => pool.left().length === 0);
  await world.time.advance(MINUTE_MS, () => pool.leftovers().length === 0);
  for (const what of pool.leftovers()) pool.ledger.find(`after the end of the pool: ${what}`);
  const isOver =
    world.processes.death === undefined && world.processes.pause === undefined && mutations.texts.length >= n;
  return {
    n,
    fate,
    isHit: n > 0 && isOver,
    mutations: mutations.texts,
    before,
    findings: pool.ledger.findings,
    vmsCreated: pool.ledger.vmsMade,
  };
}

/** Counts the mutations of a world on their way, and loses the answer to one of them: its caller learns nothing of what it has done. */
class Mutations {
  readonly texts: string[] = [];

  constructor({ weather, simulation: { faults } }: MachinesWorld, lost: number) {
    const isLost = (text: string): boolean => this.texts.push(text) === lost;
    const [faultOf, next] = [weather.faultOf.bind(weather), faults.next.bind(faults)];
    weather.faultOf = (request) => {
      const { method, path } = request;
      const isMutation = method !== 'GET' && !/\/(events|leases|selfsubject[a-z]+reviews)(\/|$|\?)/.test(path);
      return isMutation && isLost(`${method} ${path}`) ? 'answer-lost' : faultOf(request);
    };
    faults.next = (method, machine) =>
      CHANGES.has(method) && isLost(`${method} ${machine}`)
        ? { method, effect: 'late', delayMs: HOUR }
        : next(method, machine);
  }
}
