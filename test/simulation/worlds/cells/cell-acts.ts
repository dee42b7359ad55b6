import type { Random } from '../../../../pkg/base/random/random.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { integerIn, oneOf } from '../../world/seeded-random.ts';
import { kubeconfigOf } from '../../world/simulated-process.ts';
import { targetURL } from '../../world/target-address.ts';
import { type Cell, settingNamed } from './cell.ts';

/** Where users do something with cells, and with those who manage them. */
export interface CellsPlace {
  readonly world: MachinesWorld;
  readonly cells: readonly Cell[];
  /** Calls `run` after so long, unless there is calm by then. */
  readonly later: (ms: number, run: () => void) => void;
}

type CellAct = (place: CellsPlace, random: Random) => void;

/** Whether somebody has asked for its pool, and not taken that back. */
function isUsed({ isThere, isEnding }: Cell): boolean {
  return isThere && !isEnding;
}

function isMissing({ isThere, isEnding }: Cell): boolean {
  return !isThere && !isEnding;
}

/** What is done with one of the cells that there are. */
const withOne =
  (act: (cell: Cell, place: CellsPlace, random: Random) => void): CellAct =>
  (place, random) => {
    const there = place.cells.filter(isUsed);
    if (there.length > 0) act(oneOf(random, there), place, random);
  };

/** For how long something stays wrong, at most. */
const WRONG_MS = 15 * 60_000;
/** Where there is one that is new, the share of those that get a Secret that was copied. */
const NEW = 0.8;
/** Of the namespaces that are given up, those that are deleted. */
const DELETED = 0.4;
/** How many processes there are at most. */
const MOST_MANAGERS = 3;

/** Values of settings that change nothing of what is promised, and others that are refused. */
const SETTINGS: readonly (readonly [name: string, value: string | null])[] = [
  [settingNamed('safety-up'), '3'],
  [settingNamed('machine-max-evict-retries'), '20'],
  [settingNamed('machine-safety-apiserver-statuscheck-timeout'), '20s'],
  [settingNamed('machine-drain-timeout'), 'soon'],
  [settingNamed('no-such-flag'), 'true'],
  [settingNamed('safety-up'), null],
  [settingNamed('no-such-flag'), null],
];

/** What can be in the Secret of a cell that leads nowhere; '': there is none. */
function spoiltKubeconfigs({ namespace }: Cell): readonly string[] {
  const server = targetURL({ target: namespace, asker: namespace });
  return [
    '',
    'clusters: []',
    '{',
    kubeconfigOf(server.replace('https:', 'http:'), 'token'),
    kubeconfigOf(server, 'token').replace('"token":"token"', '"exec":{"command":"sh"}'),
  ];
}

/** Where all have one target cluster: Machines of equal names, Nodes of nobody, deletions by force. */
function mixNames({ world, cells }: CellsPlace, random: Random): void {
  const used = cells.filter(isUsed);
  if (used.length === 0) return;
  const cell = oneOf(random, used);
  const drawn = random();
  const others = cells.filter((one) => one !== cell).flatMap((one) => one.world.machines);
  if (drawn < 0.15) {
    cell.createLone(`twin-${integerIn(random, 1, 2)}`);
    return;
  }
  if (drawn < 0.5 && others.length > 0) {
    const { name } = oneOf(random, others).metadata;
    if (random() < 0.5) cell.createLone(name);
    else cell.bringLone(name);
    return;
  }
  if (drawn < 0.6) return cell.deleteLone(random);
  if (drawn < 0.8 && cell.world.machines.length > 0) {
    const { name } = oneOf(random, cell.world.machines).metadata;
    cell.pool.ledger.askedFor(name);
    cell.forceDeletion(name);
    cell.world.act('DELETE', cell.world.pathOf('machines', name), {});
    return;
  }
  const name = `stranger-${integerIn(random, 1, 3)}`;
  const path = '/api/v1/nodes';
  if (world.servers.target.handle({ method: 'GET', path: `${path}/${name}` }).code === 200) return;
  const spec = random() < 0.5 ? {} : { providerID: `other:///${name}` };
  world.act('POST', path, { metadata: { name }, spec }, 'target');
}

/** What users do with cells, beside what they do with the pools in them. */
export const CELL_ACTS = {
  /** A namespace is made, or made again. */
  found: ({ cells }, random) => {
    const missing = cells.filter(isMissing);
    if (missing.length > 0) oneOf(random, missing).setRight();
  },
  /** A namespace is not to be managed for a while, or it is deleted. */
  release: withOne((cell, { later }, random) => {
    if (random() < DELETED && cell.mayEnd) return cell.deleteNamespace({ isKept: true });
    cell.select(false);
    later(random() * WRONG_MS, () => cell.select(true));
  }),
  rotate: withOne((cell, _place, random) => cell.rotate({ isMoved: random() < 0.4 })),
  spoil: withOne((cell, { later }, random) => {
    cell.setKubeconfig(oneOf(random, spoiltKubeconfigs(cell)));
    later(random() * WRONG_MS, () => cell.lead(cell.namespace));
  }),
  annotate: withOne((cell, _place, random) => cell.annotate(Object.fromEntries([oneOf(random, SETTINGS)]))),
  /** Two namespaces have the same target cluster for a while; one that is new has no Machines that would keep it from getting it. */
  confuse: (place, random) => {
    const { cells, later } = place;
    if (place.world.options.hasTarget) return mixNames(place, random);
    const missing = cells.filter(isMissing);
    const there = cells.filter(isUsed);
    if (there.length === 0) return;
    const isNew = missing.length > 0 && random() < NEW;
    const cell = oneOf(random, isNew ? missing : there);
    const other = oneOf(random, isNew ? there : cells).namespace;
    if (isNew) cell.copyOf(other);
    else cell.lead(other);
    later(random() * WRONG_MS, () => cell.lead(cell.namespace));
  },
  /** A process is told to end, and another one is started. */
  rollManager: ({ world: { processes } }, random) => {
    const { running } = processes;
    if (running.length > 0) oneOf(random, running).terminate();
  },
  scaleManagers: ({ world: { processes } }, random) => {
    if (!processes.elects) return;
    processes.replicas = integerIn(random, 1, MOST_MANAGERS);
    for (const process of processes.running.slice(processes.replicas)) process.terminate();
  },
} satisfies Readonly<Record<string, CellAct>>;

/** One of them. */
export type CellActName = keyof typeof CELL_ACTS;

export const CELL_ACT_NAMES = Object.keys(CELL_ACTS) as CellActName[];
