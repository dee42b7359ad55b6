import type { Random } from '../../../../pkg/base/random/random.ts';
import { drawStrategy, USER_ACT_NAMES } from '../../world/acts.ts';
import type { MachinesWorld, MachinesWorldOptions } from '../../world/machines-world.ts';
import type { Population } from '../../world/population.ts';
import { integerIn, oneOf, seededRandom } from '../../world/seeded-random.ts';
import type { WorldKind } from '../kind.ts';
import { Cell, KUBECONFIG_SECRET, SELECTED_LABEL } from './cell.ts';
import { CellsLedger } from './cells-ledger.ts';

/** Several pools, each in a namespace with a target cluster and a cloud of its own, that the same processes manage. */
class Cells implements Population {
  readonly ledger: CellsLedger;
  readonly #cells: readonly Cell[];

  constructor(world: MachinesWorld, cells: readonly Cell[]) {
    this.#cells = cells;
    this.ledger = new CellsLedger(world, cells);
  }

  act(names: readonly string[], random: Random): void {
    oneOf(random, this.#cells).pool.act(names, random);
  }

  mishap(random: Random): void {
    oneOf(random, this.#cells).pool.mishap(random);
  }

  setBack(): void {
    for (const { pool } of this.#cells) pool.setBack();
  }

  calm(): void {
    for (const { pool } of this.#cells) pool.calm();
  }

  expectProgress(withinMs: number): void {
    for (const { pool } of this.#cells) pool.expectProgress(withinMs);
  }

  isAsAsked(): boolean {
    return this.#cells.every(({ pool }) => pool.isAsAsked()) && this.ledger.notManagedOnce().length === 0;
  }

  settle(): void {
    for (const { pool } of this.#cells) pool.settle();
  }

  beginRest(): void {
    // Nobody asks anything.
  }

  leftovers(): readonly string[] {
    return this.#of(({ pool }) => pool.leftovers());
  }

  untruths(): readonly string[] {
    return this.#of(({ pool }) => pool.untruths());
  }

  end(): void {
    for (const { pool } of this.#cells) pool.end();
  }

  left(): readonly string[] {
    return this.#of(({ pool }) => pool.left());
  }

  shown(): string {
    return [
      ...this.ledger.notManagedOnce(),
      ...this.#cells
        .filter(({ pool }) => !pool.isAsAsked())
        .map(({ namespace, pool }) => `${namespace} ${pool.shown()}`),
    ].join('; ');
  }

  #of(told: (cell: Cell) => readonly string[]): readonly string[] {
    return this.#cells.flatMap((cell) => told(cell).map((what) => `${cell.namespace}: ${what}`));
  }
}

/** What a seed has in store for the cells, and for those who manage them. */
interface Plan {
  readonly names: readonly string[];
  readonly shards: number;
  readonly managers: number;
}

function planOf(seed: number): Plan {
  const random = seededRandom(seed, 'cells');
  const names = Array.from({ length: integerIn(random, 3, 5) }, (_, i) => `cell-${i + 1}`);
  return { names, shards: integerIn(random, 2, 5), managers: integerIn(random, 1, 3) };
}

function adapt({ flags = {}, ...options }: MachinesWorldOptions): MachinesWorldOptions {
  const { names, shards, managers } = planOf(options.seed);
  return {
    ...options,
    hasTarget: false,
    pods: undefined,
    managers: flags['leader-elect'] === 'false' ? 1 : managers,
    furnish: () => undefined,
    flags: {
      ...flags,
      cells: SELECTED_LABEL,
      'cell-kubeconfig-secret': KUBECONFIG_SECRET,
      'cell-shards': String(shards),
      'target-kubeconfig': '',
      driver: names.map((name) => `${name}=unix:///nowhere`),
    },
  };
}

async function populate(world: MachinesWorld, seed: number): Promise<Population> {
  const { names, shards } = planOf(seed);
  const random = seededRandom(seed, 'pools of cells');
  const cells: Cell[] = [];
  for (const name of names) {
    const pods = random() < 0.3 ? { replicas: integerIn(random, 1, 5), maxUnavailable: 1, volumes: 0 } : undefined;
    cells.push(
      await Cell.create(world, name, shards, {
        replicas: Math.min(integerIn(random, 1, 4), world.options.replicas),
        strategy: random() < 0.5 ? drawStrategy(random) : undefined,
        pods,
      }),
    );
  }
  while (world.processes.lacksOne) await world.processes.start();
  return new Cells(world, cells);
}

/** Namespaces that one program manages, each with its own target cluster. */
export const CELLS: WorldKind = {
  acts: USER_ACT_NAMES,
  usual: [],
  without: [],
  adapt,
  populate,
};
