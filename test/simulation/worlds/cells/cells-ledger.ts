import type { MachinesWorld } from '../../world/machines-world.ts';
import type { Judge } from '../../world/population.ts';
import type { Cell } from './cell.ts';

/** Watches over cells together: what each must never do, and what they must not do to one another. */
export class CellsLedger implements Judge {
  readonly #world: MachinesWorld;
  readonly #cells: readonly Cell[];
  readonly #own: string[] = [];

  constructor(world: MachinesWorld, cells: readonly Cell[]) {
    this.#world = world;
    this.#cells = cells;
  }

  get findings(): readonly string[] {
    return [...this.#own, ...this.#cells.flatMap(({ pool }) => pool.ledger.findings)];
  }

  get vmsMade(): number {
    return this.#cells.reduce((sum, { pool }) => sum + pool.ledger.vmsMade, 0);
  }

  get isHopeless(): boolean {
    return this.#cells.some(({ pool }) => pool.ledger.isHopeless);
  }

  find(what: string): void {
    this.#world.trace.add(`finding ${what}`);
    this.#own.push(`${(this.#world.time.elapsedMs / 1_000).toFixed(0)} s: ${what}`);
  }

  look(): void {
    for (const { pool } of this.#cells) pool.ledger.look();
  }

  /** Cells that are not managed by exactly one process. */
  notManagedOnce(): readonly string[] {
    const { running } = this.#world.processes;
    return this.#cells.flatMap(({ namespace }) => {
      const managing = running.filter(({ cells }) => cells?.running.has(namespace) === true);
      return managing.length === 1 ? [] : [`cell ${namespace} is managed by ${managing.length} processes`];
    });
  }
}
