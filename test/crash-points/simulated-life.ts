import type { Lease } from '../../pkg/apis/wire.ts';
import type { Plan } from '../cloud/life.ts';
import { deleteMachine } from '../simulation/world/acts.ts';
import { MachinesWorld, type MachinesWorldOptions } from '../simulation/world/machines-world.ts';
import { Cell } from '../simulation/worlds/cells/cell.ts';
import { withCells } from '../simulation/worlds/cells/cells-world.ts';
import { type Fate, type FaultyLife, FaultyWorld, PROGRESS_MS } from './faulty-world.ts';

const MINUTE_MS = 60_000;

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

/** The life of a pool. */
export interface SimulatedLife extends FaultyLife {
  /** How many mutations there were before a user deleted a Machine; 0 without. */
  readonly before: number;
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
  const faulty = new FaultyWorld(host);
  const { world, pool } = faulty;
  if (!idempotentCreate) world.simulation.faults.set([{ method: 'CreateMachine', effect: 'duplicate' }]);
  const holders = new Set<string>();
  world.servers.control.objects.onChange(({ plural }, { object }) => {
    if (plural !== 'leases' || object.metadata.name !== world.lease) return;
    const { holderIdentity = '' } = (object as unknown as Lease).spec ?? {};
    if (holderIdentity !== '') holders.add(holderIdentity);
  });
  faulty.arm(n, fate);

  for (let roll = 0; roll <= rolls; roll++) {
    if (roll > 0) world.changePool({ spec: { template: { metadata: { annotations: { roll: String(roll) } } } } });
    pool.expectProgress(PROGRESS_MS);
    await faulty.until('as asked for', () => pool.isAsAsked());
    pool.settle();
  }
  let before = 0;
  if (drains) {
    await faulty.until('full of pods', () => world.workload?.pods.length === PODS.replicas);
    before = faulty.mutations.length;
    const [machine] = world.machines;
    if (machine !== undefined) deleteMachine(world, pool.ledger, machine.metadata.name);
    await faulty.until(
      'as asked for',
      () => world.machines.every(({ metadata }) => metadata.name !== machine?.metadata.name) && pool.isAsAsked(),
    );
    pool.settle();
  }
  pool.end();
  await faulty.until('gone', () => pool.left().length === 0);
  await world.time.advance(MINUTE_MS, () => pool.leftovers().length === 0);
  for (const what of pool.leftovers()) pool.ledger.find(`after the end of the pool: ${what}`);
  return { ...faulty.life, before, holders: holders.size };
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
