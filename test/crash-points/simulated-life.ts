import type { Lease } from '../../pkg/apis/wire.ts';
import type { DriverMethod } from '../../packages/providers/sim/faults.ts';
import { HOUR } from '../durations.ts';
import type { Point } from '../cloud/crash-point.ts';
import type { Plan } from '../cloud/life.ts';
import { deleteMachine } from '../simulation/world/acts.ts';
import { MachinesWorld, type MachinesWorldOptions } from '../simulation/world/machines-world.ts';
import { Pool } from '../simulation/world/pool.ts';
import { Cell } from '../simulation/worlds/cells/cell.ts';
import { withCells } from '../simulation/worlds/cells/cells-world.ts';

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
  /** The pool is in a cell, which two replicas share. */
  readonly inCell?: boolean;
}

/** Of these the cell's is moved. */
const SHARDS = 2;
const PODS = { replicas: 3, maxUnavailable: 1, volumes: 1 };

/** What happens at a mutation. paused: the process stands still for longer than its Leases last, and another one takes its place. */
export const FATES = ['before', 'after', 'lost', 'paused'] as const satisfies readonly (Point | 'paused')[];

/**
 * What makes another replica manage a cell at a mutation. handed-over: the replica is told to end; joined: another one starts, which is to have
 * the cell from then on, and this one goes on.
 */
export const MOVES = ['before', 'after', 'paused', 'handed-over', 'joined'] as const;

/** One of the fates or moves above. */
export type Fate = (typeof FATES)[number] | (typeof MOVES)[number];

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
  /** How many processes have held the Lease of the shard of its cell; 0: it is in none. */
  readonly holders: number;
}

/** Takes a pool from its creation to its deletion in a world that is fine otherwise, while the n-th mutation goes wrong; with n = 0 none. */
export async function liveThrough(
  { replicas, rolls, drains = false, inCell = false }: SimulatedPlan,
  n: number,
  fate: Fate,
): Promise<SimulatedLife> {
  // A creation that is repeated blindly makes a second VM. Who waits for an answer that never comes may make one in its place.
  const idempotentCreate = fate === 'lost';
  const flags = { 'leader-elect': String(inCell || fate === 'paused') };
  const options = { seed: 1, replicas, flags, idempotentCreate, ...(drains && { pods: PODS }) };
  await using host = await (inCell ? openCell(options, fate) : MachinesWorld.create(options));
  const { processes, time } = host;
  const [world] = host.cells;
  if (world === undefined) throw new Error('there is no pool');
  if (!idempotentCreate) world.simulation.faults.set([{ method: 'CreateMachine', effect: 'duplicate' }]);
  const pool = new Pool(world);
  const holders = new Set<string>();
  world.servers.control.objects.onChange(({ plural }, { object }) => {
    if (plural !== 'leases' || object.metadata.name !== world.lease) return;
    const { holderIdentity = '' } = (object as unknown as Lease).spec ?? {};
    if (holderIdentity !== '') holders.add(holderIdentity);
  });
  const mutations = new Mutations(host, fate === 'lost' ? n : 0);
  const blow = { after: n, countsChanges: true };
  if (n > 0 && (fate === 'before' || fate === 'after')) processes.death = { ...blow, how: fate };
  if (n > 0 && fate === 'paused') processes.pause = { ...blow, how: 2 * processes.leaseDurationMs };
  if (n > 0 && fate === 'handed-over') processes.turn = { ...blow, how: (process) => process.terminate() };
  if (n > 0 && fate === 'joined') processes.turn = { ...blow, how: () => (processes.replicas += 1) };

  const until = async (what: string, isSo: () => boolean): Promise<void> => {
    const untilMs = time.elapsedMs + PROGRESS_MS;
    while (time.elapsedMs < untilMs && !isSo()) {
      await time.advance(STEP_MS, () => processes.lacksOne || processes.needsStandby);
      pool.ledger.look();
      if (processes.needsStandby) await processes.start();
      processes.needsStandby = false;
      if (!processes.lacksOne) continue;
      await time.advance(RESTART_MS);
      await processes.start();
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
  await time.advance(MINUTE_MS, () => pool.leftovers().length === 0);
  for (const what of pool.leftovers()) pool.ledger.find(`after the end of the pool: ${what}`);
  const { death, pause, turn } = processes;
  const isOver = death === undefined && pause === undefined && turn === undefined && mutations.texts.length >= n;
  return {
    n,
    fate,
    isHit: n > 0 && isOver,
    mutations: mutations.texts,
    before,
    findings: pool.ledger.findings,
    vmsCreated: pool.ledger.vmsMade,
    holders: holders.size,
  };
}

/** A world with one cell; another replica is to manage it when one joins. */
async function openCell(options: MachinesWorldOptions, fate: Fate): Promise<MachinesWorld> {
  const names = ['cell'];
  const managers = fate === 'joined' ? 1 : 2;
  const world = await MachinesWorld.create(withCells(options, { names, shards: SHARDS, managers }));
  const { replicas, pods } = { pods: undefined, ...options };
  (await Cell.create(world, 'cell', SHARDS, { replicas: replicas ?? 1, pods })).setRight();
  while (world.processes.lacksOne) await world.processes.start();
  return world;
}

/** Counts the mutations of a world on their way, and loses the answer to one of them: its caller learns nothing of what it has done. */
class Mutations {
  readonly texts: string[] = [];

  constructor({ weather: ofControl, cells: [cell] }: MachinesWorld, lost: number) {
    if (cell === undefined) throw new Error('there is no pool');
    const isLost = (text: string): boolean => this.texts.push(text) === lost;
    for (const weather of new Set([ofControl, cell.weather])) {
      const faultOf = weather.faultOf.bind(weather);
      weather.faultOf = (request) => {
        const { method, path } = request;
        const isMutation = method !== 'GET' && !/\/(events|leases|selfsubject[a-z]+reviews)(\/|$|\?)/.test(path);
        return isMutation && isLost(`${method} ${path}`) ? 'answer-lost' : faultOf(request);
      };
    }
    const { faults } = cell.simulation;
    const next = faults.next.bind(faults);
    faults.next = (method, machine) =>
      CHANGES.has(method) && isLost(`${method} ${machine}`)
        ? { method, effect: 'late', delayMs: HOUR }
        : next(method, machine);
  }
}
