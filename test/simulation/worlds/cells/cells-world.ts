import type { Random } from '../../../../pkg/base/random/random.ts';
import { isBeingDeleted } from '../../../../pkg/apis/meta.ts';
import { MACHINES_ROLE_BINDING } from '../../../../pkg/operator/preflight/roles/machinist.ts';
import { RBAC_KINDS } from '../../served/authorizer.ts';
import { drawStrategy, USER_ACT_NAMES } from '../../world/acts.ts';
import type { MachinesWorld, MachinesWorldOptions } from '../../world/machines-world.ts';
import type { Population } from '../../world/population.ts';
import type { RequestFault } from '../../world/network.ts';
import { integerIn, oneOf, seededRandom } from '../../world/seeded-random.ts';
import type { WorldKind } from '../kind.ts';
import { Cell, KUBECONFIG_SECRET, SELECTED_LABEL } from './cell.ts';
import { CELL_ACT_NAMES, CELL_ACTS, type CellActName } from './cell-acts.ts';
import { CellsLedger } from './cells-ledger.ts';

/** How long it takes at most until a cell that was left alone is managed. */
const BEGIN_MS = 10 * 60_000;
/** Of cells that are there in trouble, those that are not managed in the calm after it. */
const LEFT_ALONE = 0.15;
/** Of the namespaces that there are at the end, those that are deleted with all that is in them. */
const DELETED = 0.5;
/** Of the mishaps, those by which a target cluster is restored; of the target clusters, those of which a backup is made at each. */
const RESTORED = 0.25;
const BACKED_UP = 0.3;
/** Of the namespaces that are deleted, those whose Machines users delete before. */
const EMPTIED = 0.5;
/** How often they look whether these are gone. */
const EMPTY_MS = 20_000;
/** Of the worlds, those in which all cells have one target cluster. */
const ONE_TARGET = 0.25;
/** Of the others, those in which namespaces are named by flags. */
const NAMED = 0.35;
/** Of the namespaces, those that are there from the beginning. */
const AT_FIRST = 0.65;

/** Several pools, each in a namespace with a target cluster and a cloud of its own, that the same processes manage. */
export class Cells implements Population {
  readonly ledger: CellsLedger;
  readonly #world: MachinesWorld;
  readonly #all: readonly Cell[];
  readonly #random: Random;
  #calms = 0;
  #isSetBack = false;

  constructor(world: MachinesWorld, cells: readonly Cell[], random: Random) {
    this.#world = world;
    this.#all = cells;
    this.#random = random;
    this.ledger = new CellsLedger(world, cells);
  }

  act(names: readonly string[], random: Random): void {
    const name = oneOf(random, names);
    if (isCellAct(name)) {
      // What is done with one may concern others.
      if (this.ledger.troubled !== undefined) return;
      CELL_ACTS[name]({ world: this.#world, cells: this.#all, later: (ms, run) => this.#later(ms, run) }, random);
      return;
    }
    const there = this.#there;
    if (there.length > 0) oneOf(random, there).pool.act([name], random);
  }

  mishap(random: Random): void {
    const cell = oneOf(random, this.#all);
    const { troubled = cell } = this.ledger;
    if (random() < RESTORED && troubled === cell) cell.restoreTarget(random);
    else cell.pool.mishap(random);
    for (const one of this.#all) if (random() < BACKED_UP) one.backUpTarget();
  }

  troubleAt(cell: number | undefined): void {
    this.ledger.troubled = cell === undefined ? undefined : this.#all[cell];
  }

  /** Those in which nothing is wrong. */
  get others(): Pick<Population, 'calm' | 'expectProgress' | 'isAsAsked' | 'shown'> {
    const cells = this.#managed.filter((cell) => cell !== this.ledger.troubled);
    return {
      calm: () => {
        for (const { pool } of cells) pool.calm();
      },
      expectProgress: (withinMs) => {
        for (const { pool } of cells) pool.expectProgress(withinMs);
      },
      isAsAsked: () => this.#areAsAsked(cells),
      shown: () => this.#shown(cells),
    };
  }

  setBack(): void {
    this.#isSetBack = true;
    for (const { pool } of this.#all) pool.setBack();
  }

  calm(): void {
    this.#calms += 1;
    for (const cell of this.#all) {
      if (cell.isEnding) {
        cell.setRight();
        cell.leaveWrongTarget();
        if (this.#isSetBack) cell.deleteForgottenVMs();
        continue;
      }
      // Nobody else would get what one has claimed that is gone.
      if (!cell.isThere) cell.leaveWrongTarget();
      // What never was need not come to be.
      if (!cell.isThere && cell.world.cloud.size === 0 && this.#random() < 0.5) continue;
      if (cell.world.sharesTarget) cell.deleteLone(this.#random);
      cell.isWanted = this.#random() >= LEFT_ALONE;
      cell.setRight();
      cell.leaveWrongTarget();
      cell.pool.calm();
    }
  }

  expectProgress(withinMs: number): void {
    for (const { pool } of this.#managed) pool.expectProgress(withinMs);
  }

  isAsAsked(): boolean {
    return this.#areAsAsked(this.#managed);
  }

  settle(): void {
    for (const { pool } of this.#managed) pool.settle();
  }

  beginRest(): void {
    // Nobody asks anything.
  }

  leftovers(): readonly string[] {
    return named(this.#managed, ({ pool }) => pool.leftovers());
  }

  untruths(): readonly string[] {
    return named(this.#managed, ({ pool }) => pool.untruths());
  }

  end(): void {
    for (const cell of this.#there) {
      const wasManaged = cell.isSelected;
      cell.isWanted = true;
      cell.setRight();
      if (this.#random() < DELETED) {
        const isKept = this.#random() < 0.5;
        const isEmptied = this.#random() < EMPTIED;
        this.#world.time.schedule(BEGIN_MS, () => this.#deleteNamespace(cell, { isKept, isEmptied }));
        continue;
      }
      // A class without a finalizer would be gone before its Machines.
      if (wasManaged) cell.pool.end();
      else this.#world.time.schedule(BEGIN_MS, () => cell.pool.end());
    }
  }

  left(): readonly string[] {
    return [...named(this.#all, ({ pool }) => pool.left()), ...endingOf(this.#all)];
  }

  shown(): string {
    return this.#shown(this.#managed);
  }

  get #there(): readonly Cell[] {
    return this.#all.filter(({ isThere }) => isThere);
  }

  /** Those that are to be managed. */
  get #managed(): readonly Cell[] {
    return this.#there.filter(({ isSelected, isEnding }) => isSelected && !isEnding);
  }

  /** Its Machines go first, if it is to be emptied, as the documentation has it. */
  #deleteNamespace(cell: Cell, how: { readonly isKept: boolean; readonly isEmptied: boolean }): void {
    const { world } = cell;
    if (how.isEmptied && world.pool !== undefined && !isBeingDeleted(world.pool)) cell.deleteDeployment();
    if (how.isEmptied && world.machines.length > 0) {
      this.#world.time.schedule(EMPTY_MS, () => this.#deleteNamespace(cell, how));
      return;
    }
    world.workload?.end();
    cell.deleteNamespace(how);
  }

  #areAsAsked(cells: readonly Cell[]): boolean {
    const areManaged = this.ledger.notManagedOnce(cells).length === 0;
    return cells.every((cell) => cell.isAsAsked) && areManaged && endingOf(this.#all).length === 0;
  }

  #shown(cells: readonly Cell[]): string {
    const unlike = cells.filter(({ isAsAsked }) => !isAsAsked);
    const shown = named(unlike, ({ pool }) => [pool.shown()]);
    return [...endingOf(this.#all), ...this.ledger.notManagedOnce(cells), ...shown].join('; ');
  }

  #later(ms: number, run: () => void): void {
    const calms = this.#calms;
    this.#world.time.schedule(ms, () => (this.#calms === calms ? run() : undefined));
  }
}

function isCellAct(name: string): name is CellActName {
  return Object.hasOwn(CELL_ACTS, name);
}

/** What is said of those whose namespaces have not gone yet. */
function endingOf(cells: readonly Cell[]): readonly string[] {
  return cells.flatMap(({ isEnding, namespace }) =>
    isEnding ? [`namespace ${namespace} is still being deleted`] : [],
  );
}

function named(cells: readonly Cell[], told: (cell: Cell) => readonly string[]): readonly string[] {
  return cells.flatMap((cell) => told(cell).map((what) => `${cell.namespace}: ${what}`));
}

/** Cells, and those who manage them. */
export interface CellsPlan {
  readonly names: readonly string[];
  readonly shards: number;
  readonly managers: number;
  /** Namespaces are named by flags, and a role in each permits what is needed, in place of a label. */
  readonly areNamed?: boolean;
  /** All have one target cluster. */
  readonly shareTarget?: boolean;
}

const ROLE_BINDINGS = RBAC_KINDS.filter(({ plural }) => plural === 'rolebindings');

/** What a seed has in store. */
function planOf(seed: number): CellsPlan {
  const random = seededRandom(seed, 'cells');
  const names = Array.from({ length: integerIn(random, 3, 5) }, (_, i) => `cell-${i + 1}`);
  const shareTarget = seededRandom(seed, 'one target of cells')() < ONE_TARGET;
  const areNamed = !shareTarget && seededRandom(seed, 'named cells')() < NAMED;
  return { names, shards: integerIn(random, 2, 5), managers: integerIn(random, 1, 3), areNamed, shareTarget };
}

/** What a world is made from in which there will be these cells. */
export function withCells(
  { flags = {}, ...options }: MachinesWorldOptions,
  { names, shards, managers, areNamed = false, shareTarget = false }: CellsPlan,
): MachinesWorldOptions {
  return {
    ...options,
    hasTarget: shareTarget,
    pods: undefined,
    managers: flags['leader-elect'] === 'false' ? 1 : managers,
    furnish: () => undefined,
    ...(areNamed && { kinds: ROLE_BINDINGS }),
    flags: {
      ...flags,
      ...(areNamed ? { 'cell-namespaces': names } : { cells: SELECTED_LABEL }),
      // Nodes of nobody are marked before a rest.
      ...(shareTarget ? { 'machine-creation-timeout': '5m' } : { 'cell-kubeconfig-secret': KUBECONFIG_SECRET }),
      'cell-shards': String(shards),
      'target-kubeconfig': shareTarget ? 'target' : '',
      driver: names.map((name) => `${name}=unix:///nowhere`),
    },
  };
}

/** In a namespace that is named, what a RoleBinding in it permits is all that is permitted. */
function permit({ weather, servers: { control } }: MachinesWorld): void {
  const faultOf = weather.faultOf.bind(weather);
  weather.faultOf = (request): RequestFault => {
    const [, namespace] = /\/namespaces\/(cell-\d+)(?:[/?]|$)/.exec(request.path) ?? [];
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings/${MACHINES_ROLE_BINDING}`;
    const isPermitted = namespace === undefined || control.handle({ method: 'GET', path }).code === 200;
    const fault = faultOf(request);
    return isPermitted || fault === 'request-lost' ? fault : 'refused-403';
  };
}

async function populate(world: MachinesWorld, seed: number): Promise<Population> {
  const { names, shards, areNamed, shareTarget } = planOf(seed);
  if (areNamed === true) permit(world);
  const random = seededRandom(seed, 'pools of cells');
  const cells: Cell[] = [];
  for (const name of names) {
    const pods =
      random() < 0.3 && shareTarget !== true
        ? { replicas: integerIn(random, 1, 5), maxUnavailable: 1, volumes: 0 }
        : undefined;
    const cell = await Cell.create(world, name, shards, {
      replicas: Math.min(integerIn(random, 1, 4), world.options.replicas),
      strategy: random() < 0.5 ? drawStrategy(random) : undefined,
      pods,
    });
    cells.push(cell);
    // The others are founded later.
    if (random() < AT_FIRST || cells.length === 1) cell.setRight();
  }
  while (world.processes.lacksOne) await world.processes.start();
  return new Cells(world, cells, seededRandom(seed, 'calm of cells'));
}

/** Namespaces that one program manages, each with its own target cluster. */
export const CELLS: WorldKind = {
  acts: [...USER_ACT_NAMES, ...CELL_ACT_NAMES],
  usual: [],
  without: ['renamed'],
  parts: true,
  adapt: (options) => withCells(options, planOf(options.seed)),
  populate,
};
