import type { Command } from 'commander';

import { openDriverCluster } from '../../pkg/drivers/cluster.ts';
import { ClusterAPIDriver } from '../../pkg/worlds/cluster-api/driver/driver.ts';
import { apiVersionOf } from '../../pkg/kube/client/resource.ts';
import { commandOf, serveDriver, type DriverProgram } from '../../pkg/drivers/serve-driver.ts';

interface Options {
  readonly kubeconfig: string;
}

const PROGRAM: DriverProgram<Options> = {
  name: 'cluster-api-driver',
  description: `A driver that creates Machines of Cluster API, on any of its infrastructure providers.

A controller for these Machines must also run: machinist run --controllers=*,cluster-api, or Cluster API itself.`,
  flags: (command) =>
    command.requiredOption(
      '--kubeconfig <file>',
      'kubeconfig of the cluster in which to create Machines of Cluster API; inClusterConfig in a pod',
    ),
  open: async ({ options: { kubeconfig }, clock, log }) => {
    const cluster = await openDriverCluster({
      kubeconfig,
      env: process.env,
      clock,
      userAgent: 'machinist-cluster-api',
    });
    const { transport, reader, writer } = cluster;
    return new ClusterAPIDriver({
      reader,
      writer,
      servedAs: (resource) => apiVersionOf(transport.served.current(resource)),
      clock,
      log,
      close: () => transport.close(),
    });
  },
};

/** Runs the driver for Cluster API until SIGTERM; its machines stay. */
export async function runClusterAPIDriver(argv: readonly string[]): Promise<void> {
  await serveDriver(PROGRAM, argv);
}

export function clusterAPIDriverCommand(): Command {
  return commandOf(PROGRAM);
}
