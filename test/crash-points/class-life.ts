import { join } from 'node:path';

import { hasFinalizer } from '../../pkg/apis/finalizers.ts';
import { MACHINE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { FaultRule } from '../../packages/providers/sim/faults.ts';
import type { Driver } from '../../pkg/driver/driver.ts';
import { driverWith } from '../drivers/driver-with.ts';
import { kindsWith } from '../simulation/api-server/kinds.ts';
import { LONE_LABEL } from '../simulation/world/ledger.ts';
import { MachinesWorld, POOL } from '../simulation/world/machines-world.ts';
import { VirtualClock } from '../simulation/world/virtual-clock.ts';
import { type Fate, type FaultyLife, FaultyWorld } from './faulty-world.ts';

/** They allow that a Machine comes to name another class. */
const ORIGINAL_KINDS = kindsWith(join(import.meta.dirname, '../crds-original'));
const OTHER = 'other';
const NAME = 'lone';
const CLASS = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineClass' };
/** A process that has died is not started again before. */
const JUST_AFTER_MS = 1_000;
/** How long it takes until every process has seen a change. */
const SEEN_MS = 2_000;
/** Of two machines that are not held up: less than what their provider asks to wait for. */
const SOON_MS = 5 * 60_000;

/** How a machine comes to name the class of another account. */
export interface Switch {
  /** Just before the mutation that goes wrong, or just after it. */
  readonly when: 'before' | 'after';
  readonly idempotentCreate: boolean;
}

/** A machine that is being created comes to name a class of another account, at the n-th mutation, which goes wrong. */
export async function switchClassAt(n: number, fate: Fate, { when, idempotentCreate }: Switch): Promise<FaultyLife> {
  const flags = { 'leader-elect': String(fate === 'paused') };
  const options = { seed: 1, replicas: 0, flags, idempotentCreate, baseKinds: ORIGINAL_KINDS };
  await using world = await MachinesWorld.create(options);
  await using account = await world.openAccount(OTHER);
  const faulty = new FaultyWorld(world, { breaks: true });
  const { processes, time, cloud } = world;
  const [own, other] = [world.simulation, account].map(({ driver }) => faulty.breaking(driver));
  processes.driverOf = ({ metadata }) => (metadata.name === OTHER ? other : own);
  if (!idempotentCreate)
    for (const { faults } of [world.simulation, account])
      faults.set([{ method: 'CreateMachine', effect: 'duplicate' }]);
  let created = 0;
  for (const one of [cloud, account.cloud]) one.onEvent((_vm, event) => void (created += Number(event === 'created')));
  world.act('POST', world.pathOf('machineclasses'), {
    ...CLASS,
    metadata: { name: OTHER },
    provider: 'sim',
    providerSpec: { zone: OTHER },
    secretRef: { name: POOL, namespace: world.namespace },
  });
  let isSwitched = false;
  const switchClass = (): void => {
    if (!isSwitched) world.act('PATCH', world.pathOf('machines', NAME), { spec: { class: { name: OTHER } } });
    isSwitched = true;
  };
  await faulty.until('as asked for', () => faulty.pool.isAsAsked());
  faulty.arm(n, fate, when === 'before' ? switchClass : () => time.schedule(JUST_AFTER_MS, switchClass));
  world.act('POST', world.pathOf('machines'), {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'Machine',
    metadata: { name: NAME, finalizers: [MACHINE_FINALIZER], labels: { [LONE_LABEL]: 'true' } },
    spec: { class: { kind: 'MachineClass', name: POOL } },
  });
  const phase = (): string | undefined => world.machines[0]?.status?.currentStatus?.phase;
  await faulty.until('running with one VM', () => phase() === 'Running' && cloud.size + account.cloud.size === 1);
  const mutations = [...faulty.mutations];
  switchClass();

  // Both are deleted; that of the VM stays, or nobody could delete the VM.
  for (const name of [POOL, OTHER]) world.act('DELETE', world.pathOf('machineclasses', name), {});
  await time.advance(SEEN_MS);
  const owner = cloud.size > 0 ? POOL : OTHER;
  if (!hasFinalizer(faulty.classOf(owner), MACHINE_FINALIZER)) faulty.find(`class ${owner} of the VM is let go`);
  faulty.pool.ledger.askedFor(NAME);
  world.act('DELETE', world.pathOf('machines', NAME), {});
  await faulty.until(
    'gone',
    () =>
      cloud.size + account.cloud.size + world.machines.length + world.nodes.length === 0 &&
      world.count('machineclasses') === 0,
  );
  return { ...faulty.life, mutations, vmsCreated: created };
}

/** How the calls with the former content of a class fail. */
export type Failure = Pick<FaultRule, 'code' | 'message' | 'retryAfterMs' | 'terminal'>;

/** The class of two machines is corrected while CreateMachine is about to fail for long, and the n-th mutation goes wrong. */
export async function correctClassAt(n: number, fate: Fate, failure: Failure): Promise<FaultyLife> {
  const flags = { 'leader-elect': String(fate === 'paused') };
  await using world = await MachinesWorld.create({ seed: 1, replicas: 0, flags });
  const faulty = new FaultyWorld(world, { breaks: true });
  const { pool } = faulty;
  const { driver, faults } = world.simulation;
  const clock = new VirtualClock(world.time);
  let isCorrected = false;
  const corrects: Driver['createMachine'] = async (request, call) => {
    if (isCorrected) return await driver.createMachine(request, call);
    isCorrected = true;
    world.act('PATCH', world.pathOf('machineclasses', POOL), { providerSpec: { zone: 'a', size: 'large' } });
    await clock.sleep(SEEN_MS, call.signal);
    faults.set([{ method: 'CreateMachine', effect: 'fail', times: 1, ...failure }]);
    return await driver.createMachine(request, call);
  };
  const broken = faulty.breaking(driverWith(driver, { createMachine: corrects }));
  world.processes.driverOf = () => broken;
  await faulty.until('as asked for', () => pool.isAsAsked());
  faulty.arm(n, fate);

  world.changePool({ spec: { replicas: 1 } });
  await faulty.until('asking for a VM', () => isCorrected);
  // The second one shares what its class has come to.
  world.changePool({ spec: { replicas: 2 } });
  await faulty.until('as asked for', () => pool.isAsAsked(), SOON_MS);
  const mutations = [...faulty.mutations];
  pool.settle();
  pool.end();
  await faulty.until('gone', () => pool.left().length === 0);
  return { ...faulty.life, mutations };
}
