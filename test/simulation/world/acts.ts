import type {
  MachineDeploymentStrategy,
  RollingLimits,
} from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { nodeNameOf } from '../../../packages/providers/sim/vm.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import { isReadyNode } from './health.ts';
import type { Ledger } from './ledger.ts';
import type { MachinesWorld } from './machines-world.ts';
import { integerIn, oneOf } from './seeded-random.ts';

/** Within this time somebody removes what was the Node of a machine that has another name. */
const FORMER_MS = 15 * 60_000;
/** Within this time a cloud controller manager finds Nodes that are not ready. */
const BLIND_MS = 120_000;

/** Something that happens, of which a ledger learns who goes with it. */
type Mishap = (world: MachinesWorld, ledger: Pick<Ledger, 'askedFor'>, random: Random) => void;
/** Something that somebody does. */
export type Act = (world: MachinesWorld, ledger: Asked, random: Random) => void;
/** What a ledger learns of what somebody does. */
type Asked = Pick<Ledger, 'askedFor' | 'askedForSet' | 'isCordoned' | 'resizedBy'>;

const change =
  (draw: (random: Random) => object): Act =>
  (world, _ledger, random) =>
    world.changePool(draw(random));

const version = (least: number, most: number): Act =>
  change((random) => ({
    spec: { template: { metadata: { annotations: { version: String(integerIn(random, least, most)) } } } },
  }));

/** What users do, by name. */
export type ActTable = Readonly<Record<string, Act>>;

/** What users do to a pool. */
export const USER_ACTS = {
  roll: version(4, 9),
  // Such a set may be there already.
  rollAgain: version(0, 3),
  scale: change((random) => ({ spec: { replicas: integerIn(random, 0, 10) } })),
  strategy: (world, _ledger, random) => {
    const strategy = isUpdatedInPlace(world) ? drawInPlace(random) : drawStrategy(random);
    world.changePool({ spec: { strategy } });
  },
  rollBack: change(() => ({ spec: { rollbackTo: { revision: 0 } } })),
  pause: change((random) => ({ spec: { paused: random() < 0.5 } })),
  deleteMachine: (world, ledger, random) => {
    if (world.machines.length === 0) return;
    deleteMachine(world, ledger, oneOf(random, world.machines).metadata.name);
  },
} satisfies ActTable;

/** What happens to machines by itself. */
const MISHAPS = {
  vmVanishes: (world, _ledger, random) => {
    if (world.cloud.size > 0) world.cloud.remove(oneOf(random, world.cloud.all()).providerID, 'vanished');
  },
  nodeDeleted: (world, ledger, random) => {
    if (world.nodes.length === 0) return;
    const { name } = oneOf(random, world.nodes).metadata;
    // A machine goes with its Node.
    ledger.askedFor(name);
    world.act('DELETE', `/api/v1/nodes/${name}`, {}, 'target');
  },
  notReady: (world, _ledger, random) => {
    if (world.nodes.length === 0) return;
    const { name } = oneOf(random, world.nodes).metadata;
    world.trace.add(`Node ${name} is not ready for a while`);
    beUnready(world, [name], 'not-ready', random() * 600_000);
  },
  cutOff: (world, _ledger, random) => {
    const share = random() < 0.5 ? 1 : 0.25 + random() * 0.5;
    const names = world.nodes.map(({ metadata }) => metadata.name).filter(() => random() < share);
    world.trace.add(`the zone, or a part of it, is cut off for a while: ${names.join(' ')}`);
    beUnready(world, names, 'unknown', 60_000 + random() * 800_000);
  },
} satisfies Readonly<Record<string, Mishap>>;

/** Names of what users do. */
export const USER_ACT_NAMES = Object.keys(USER_ACTS) as (keyof typeof USER_ACTS)[];
/** One of them. */
export type UserAct = keyof typeof USER_ACTS;

/** A user does one of those things. */
export function userAct(
  table: ActTable,
  names: readonly string[],
  world: MachinesWorld,
  ledger: Ledger,
  random: Random,
): void {
  table[oneOf(random, names)]?.(world, ledger, random);
}

/** Something happens to a machine. */
export const mishap: Mishap = (world, ledger, random) => oneOf(random, Object.values(MISHAPS))(world, ledger, random);

/**
 * The host of a VM gets another name, once: its kubelet registers anew, and what was its Node falls silent. Somebody removes that after a while, or
 * nobody does. Not where there are pods: on that Node nobody would end them.
 */
export function renameHost(world: MachinesWorld, random: Random): void {
  const { simulation, cloud, nodes, time, trace, workload } = world;
  const names = new Set(nodes.map(({ metadata }) => metadata.name));
  const joined = cloud
    .all()
    .filter(({ machineName, power, hostname }) => power === 'on' && hostname === undefined && names.has(machineName));
  if (workload !== undefined || joined.length === 0) return;
  const vm = oneOf(random, joined);
  const [former, hostname] = [vm.machineName, `${vm.machineName}-${integerIn(random, 0, 999)}`];
  trace.add(`the host of ${former} is renamed to ${hostname}`);
  simulation.nodes?.rename(vm, hostname);
  if (random() < 0.6) time.schedule(random() * FORMER_MS, () => deleteUnready(world, [former]));
}

/** A user deletes a Machine. */
export function deleteMachine(world: MachinesWorld, ledger: Pick<Ledger, 'askedFor'>, name: string): void {
  ledger.askedFor(name);
  world.act('DELETE', world.pathOf('machines', name), {});
}

/** How a pool is rolled: at least one machine may be missing, so that a rollout ends. */
export function drawStrategy(random: Random): MachineDeploymentStrategy {
  return { type: 'RollingUpdate', rollingUpdate: drawLimits(random) };
}

/** How a pool is updated in place. */
export function drawInPlace(random: Random): MachineDeploymentStrategy {
  const orchestrationType = random() < 0.75 ? 'Auto' : 'Manual';
  return { type: 'InPlaceUpdate', inPlaceUpdate: { ...drawLimits(random), orchestrationType } };
}

/** Whether that is how it is updated from its beginning. */
function isUpdatedInPlace({ options }: MachinesWorld): boolean {
  return options.strategy?.type === 'InPlaceUpdate';
}

/** Limits of such a rollout. */
function drawLimits(random: Random): Required<RollingLimits> {
  const draw = (least: number): number | string =>
    random() < 0.5 ? integerIn(random, least, 3) : `${integerIn(random, least * 20, 60)}%`;
  return { maxSurge: draw(0), maxUnavailable: draw(1) };
}

/** Nodes are not ready, or fall silent, for a while; a cloud controller manager that does not find their VMs deletes them meanwhile. */
export function beUnready(
  world: MachinesWorld,
  names: readonly string[],
  readiness: 'not-ready' | 'unknown',
  forMs: number,
): void {
  const { simulation, cloud, time, blindness } = world;
  const say = (how: typeof readiness | 'ready'): void => {
    for (const name of names) {
      // Without its VM nobody would say so, nor where that has another name by now.
      if (cloud.named(name).some((vm) => nodeNameOf(vm) === name))
        void simulation.nodes?.setReadiness(name, how).catch(() => undefined);
    }
  };
  say(readiness);
  if (blindness !== undefined)
    time.schedule(blindness() * Math.min(BLIND_MS, forMs), () => deleteUnready(world, names));
  time.schedule(forMs, () => {
    say('ready');
    const present = new Set(world.nodes.map(({ metadata }) => metadata.name));
    // As somebody does at last who sees machines without a Node.
    for (const name of names) if (!present.has(name)) simulation.nodes?.restart(name);
  });
}

function deleteUnready(world: MachinesWorld, names: readonly string[]): void {
  for (const node of world.nodes) {
    const { name, deletionTimestamp } = node.metadata;
    if (!names.includes(name) || isReadyNode(node) || deletionTimestamp !== undefined) continue;
    world.deletedNodes.add(name);
    world.act('DELETE', `/api/v1/nodes/${name}`, {}, 'target');
  }
}
