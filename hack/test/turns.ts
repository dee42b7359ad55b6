import { type Choice, choose } from './sample.ts';

/** Test files that show the same kind of thing on real servers, of which a run of all levels takes some. */
export interface Turns {
  readonly kind: string;
  readonly files: readonly string[];
  /** How many of them a run takes. */
  readonly least: number;
  /** What explores the whole in each run. */
  readonly explored: string;
}

/** A level that is named takes all of its files. What guards machines in an outage, or behind a stopped zone, is in none of these. */
export const TURNS: readonly Turns[] = [
  {
    kind: 'processes that die or stand still',
    files: [
      'test/faults/class-crash-points.test.ts',
      'test/faults/control-plane.test.ts',
      'test/faults/crash-points.test.ts',
      'test/faults/drain-crash-points.test.ts',
      'test/faults/main-job-processes.test.ts',
      'test/faults/one-life.test.ts',
      'test/faults/paused-leader.test.ts',
    ],
    least: 2,
    explored: 'test/crash-points, and the deaths and pauses of simulated worlds',
  },
  {
    kind: 'servers and drivers that fail',
    files: [
      'test/faults/fault-table.test.ts',
      'test/faults/history.test.ts',
      'test/faults/leadership.test.ts',
      'test/faults/main-job-network.test.ts',
      'test/faults/main-job-retries.test.ts',
      'test/faults/slow-provider.test.ts',
      'test/faults/watches.test.ts',
    ],
    least: 2,
    explored: 'the faults of simulated worlds, whose API server answers as kube-apiserver does',
  },
  {
    kind: 'cells',
    files: [
      'test/integration/cells-autoscaler.test.ts',
      'test/integration/cells-cluster-api-driver.test.ts',
      'test/integration/cells-cluster-api.test.ts',
      'test/integration/cells-commands.test.ts',
      'test/integration/cells-mirantis.test.ts',
      'test/integration/cells-one-account.test.ts',
      'test/integration/cells-one-target.test.ts',
      'test/integration/cells-tenant.test.ts',
      'test/integration/cells.test.ts',
      'test/integration/named-cells.test.ts',
    ],
    least: 2,
    explored: 'the world of cells, and test/simulation/worlds/cells',
  },
  {
    kind: 'Machines of Cluster API',
    files: [
      'test/integration/cluster-api-all-namespaces.test.ts',
      'test/integration/cluster-api-contestants.test.ts',
      'test/integration/cluster-api-driver.test.ts',
      'test/integration/cluster-api-workload.test.ts',
      'test/integration/cluster-api.test.ts',
    ],
    least: 1,
    explored: 'the world of Cluster API',
  },
  {
    kind: 'Machines of IronCore',
    files: [
      'test/faults/ironcore-missing.test.ts',
      'test/faults/ironcore-restore.test.ts',
      'test/faults/ironcore-two-clusters.test.ts',
      'test/integration/ironcore-driver.test.ts',
      'test/integration/ironcore-machines.test.ts',
    ],
    least: 1,
    explored: 'the world of IronCore',
  },
  {
    kind: 'autoscalers',
    files: [
      'test/faults/autoscaler.test.ts',
      'test/integration/autoscaler-mutations.test.ts',
      'test/integration/scaler-handoff.test.ts',
    ],
    least: 1,
    explored: 'the world of the autoscaler',
  },
  {
    kind: 'machines with kubelets',
    files: ['test/e2e/machine-deployments.test.ts', 'test/e2e/machines.test.ts'],
    least: 1,
    explored: 'test/e2e/demo.test.ts, with kubelets in each run',
  },
  {
    kind: 'the services of OpenStack',
    files: ['test/openstack/cinder.test.ts', 'test/openstack/driver.test.ts'],
    least: 1,
    explored: 'test/integration/openstack-contract.test.ts, on a simulated cloud',
  },
];

/** The files that have no turn in this run. */
export function waitingFor(choice: Choice): readonly string[] {
  return TURNS.flatMap(({ kind, files, least }) => {
    // A pattern of rows is none of files.
    if (choice.how === 'matching') return [];
    const chosen = choose({ name: kind, rows: files, nameOf: (file) => file, kindsOf: () => [kind], least }, choice);
    return files.filter((file) => !chosen.includes(file));
  });
}
