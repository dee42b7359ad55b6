import { Gauge, type Registry } from 'prom-client';

/** How many cells and shards a process has, as asked at each scrape. */
export interface CellCounts {
  readonly running: number;
  /** Namespaces of cells that cannot start. */
  readonly refused: readonly string[];
  readonly shards: number;
  readonly replicas: number;
}

/** Declares what `/metrics` says of cells. */
export function cellMetrics(registry: Registry, counts: () => CellCounts): void {
  const registers = [registry];
  void new Gauge({
    name: 'machinist_cells',
    help: 'Cells of this process, by state (running, refused).',
    labelNames: ['state'],
    registers,
    collect() {
      const { running, refused } = counts();
      this.set({ state: 'running' }, running);
      this.set({ state: 'refused' }, refused.length);
    },
  });
  void new Gauge({
    name: 'machinist_cell_refused',
    help: 'Namespaces that --cells selects and that are not managed, because their settings or their kubeconfig cannot be used: 1.',
    labelNames: ['cell'],
    registers,
    collect() {
      this.reset();
      for (const cell of counts().refused) this.set({ cell }, 1);
    },
  });
  void new Gauge({
    name: 'machinist_cell_shards',
    help: 'Shards of the cells that this process holds; the sum over all replicas is --cell-shards.',
    registers,
    collect() {
      this.set(counts().shards);
    },
  });
  void new Gauge({
    name: 'machinist_cell_replicas',
    help: 'Replicas that share the cells, as this process sees them.',
    registers,
    collect() {
      this.set(counts().replicas);
    },
  });
}
