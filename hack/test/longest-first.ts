import { statSync } from 'node:fs';

/**
 * The files that take longest, the longest first, and after those with a server the ones without; a run ends when its last file does, so
 * none of these may be begun late.
 * Jest itself would order them by how long they took the last time, which a clean checkout does not know.
 */
export const LONGEST: readonly string[] = [
  'test/openstack/driver.test.ts',
  'test/openstack/scale.test.ts',
  'test/faults/crash-points.test.ts',
  'test/integration/cluster-api-driver.test.ts',
  'test/faults/paused-leader.test.ts',
  'test/integration/ironcore-machines.test.ts',
  'test/e2e/demo.test.ts',
  'test/integration/new-drivers.test.ts',
  'test/integration/cluster-api-contestants.test.ts',
  'test/faults/drain-crash-points.test.ts',
  'test/faults/history.test.ts',
  'test/faults/main-job-processes.test.ts',
  'test/faults/leadership.test.ts',
  'test/faults/safety.test.ts',
  'test/integration/refusals.test.ts',
  'test/faults/rollouts-at-scale.test.ts',
  'test/integration/driver-contract.test.ts',
  'test/e2e/machine-deployments.test.ts',
  'test/faults/main-job-retries.test.ts',
  'test/e2e/machines.test.ts',
  'test/faults/fault-table.test.ts',
  'test/integration/outage.test.ts',
  'test/faults/slow-provider.test.ts',
  'test/faults/autoscaler.test.ts',
  'test/faults/one-life.test.ts',
  'test/faults/zone-stop.test.ts',
  'test/faults/watches.test.ts',
  'test/integration/lease-thread.test.ts',
  'test/integration/machine-creation.test.ts',
  'test/faults/control-plane.test.ts',
  'test/faults/least-privilege.test.ts',
  'test/integration/in-place-update.test.ts',
  'test/integration/odd-objects.test.ts',
  'test/integration/two-programs.test.ts',
  'test/integration/crds-upgrade.test.ts',
  'test/integration/documented-commands.test.ts',
  'test/integration/machine-deployment.test.ts',
  'test/faults/main-job-scale.test.ts',
  'test/integration/machine-set.test.ts',
  'test/integration/drain-volumes.test.ts',
  'test/integration/machine.test.ts',
  'test/integration/leader-election.test.ts',
  'test/faults/main-job-network.test.ts',
  'hack/generate/files.test.ts',
  'pkg/conformance/verify.test.ts',
  'hack/check/contract-checks.test.ts',
  'hack/driver-package/build.test.ts',
];

/** A test file, as jest has it. */
interface TestFile {
  readonly path: string;
}

/** Jest's order of files: those above, then the others by size. */
// oxlint-disable-next-line import/no-default-export -- jest asks for it
export default class LongestFirst {
  sort<T extends TestFile>(tests: readonly T[]): T[] {
    const sizes = new Map(tests.map(({ path }) => [path, statSync(path).size]));
    const sizeOf = ({ path }: TestFile): number => sizes.get(path) ?? 0;
    const rankOf = ({ path }: TestFile): number => {
      const rank = LONGEST.findIndex((file) => path.endsWith(`/${file}`));
      return rank === -1 ? LONGEST.length : rank;
    };
    return tests.toSorted((a, b) => rankOf(a) - rankOf(b) || sizeOf(b) - sizeOf(a));
  }

  /** Nothing is remembered: the order of a run is that of every run. */
  cacheResults(): void {}
}
