import type { Registry } from 'prom-client';

import { declaring } from '../../base/metrics/declaring.ts';

/** How many cells and shards a process has, as asked at each scrape. */
export interface CellCounts {
  readonly running: number;
  /** Namespaces of cells that are not managed. */
  readonly refused: readonly string[];
  /** How many workload clusters must not be used, by cell; only those that have some. */
  readonly refusedWorkloads: ReadonlyMap<string, number>;
  /** Namespaces with Machines that are no cells. */
  readonly unselected: number;
  /** That are held. */
  readonly shards: number;
  /** By the flag. */
  readonly configuredShards: number;
  readonly replicas: number;
}

/** Declares what `/metrics` says of cells. */
export function cellMetrics(registry: Registry, counts: () => CellCounts): void {
  const { series, counted } = declaring(registry);
  series('machinist_cells', 'Cells of this process, by state (running, refused).', ['state'], () => {
    const { running, refused } = counts();
    return [
      [{ state: 'running' }, running],
      [{ state: 'refused' }, refused.length],
    ];
  });
  counted(
    'machinist_cell_refused',
    'Namespaces that are selected or named as cells and that are not managed, because their settings or their kubeconfig cannot be used, permissions are missing in them, another manager is running in them, or their target cluster is that of others or cannot be claimed: 1.',
    ['cell'],
    () => counts().refused.map((cell) => ({ cell })),
  );
  series(
    'machinist_cell_refused_workload_clusters',
    'Workload clusters of Cluster API in which nothing is done, because another namespace has them, by cell.',
    ['cell'],
    () => [...counts().refusedWorkloads].map(([cell, count]) => [{ cell }, count]),
  );
  series(
    'machinist_cell_namespaces_unselected',
    'Namespaces with Machines that are no cells, because --cells does not select them: either another manager manages them, or none does. Each replica shows all of them; 0 with --cell-namespaces.',
    [],
    () => [[{}, counts().unselected]],
  );
  series(
    'machinist_cell_shards',
    'Shards of the cells that this process holds; the sum over all replicas is --cell-shards.',
    [],
    () => [[{}, counts().shards]],
  );
  series('machinist_cell_shards_configured', 'Value of --cell-shards of this process.', [], () => [
    [{}, counts().configuredShards],
  ]);
  series('machinist_cell_replicas', 'Replicas that share the cells, as this process sees them.', [], () => [
    [{}, counts().replicas],
  ]);
}
