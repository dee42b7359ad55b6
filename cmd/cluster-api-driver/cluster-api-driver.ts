import type { Command } from 'commander';

import { openCluster } from '../../pkg/drivers/cluster.ts';
import { ClusterAPIDriver } from '../../pkg/drivers/cluster-api/driver.ts';
import { apiVersionOf } from '../../pkg/kube/resource.ts';
import { commandOf, serveDriver, type DriverProgram } from '../../pkg/drivers/serve-driver.ts';

interface Options {
  readonly kubeconfig: string;
}

const PROGRAM: DriverProgram<Options> = {
  name: 'cluster-api-driver',
  description: `A driver whose machines are Machines of Cluster API, on any infrastructure provider of it.

Who looks after these Machines, machinist run --controllers=*,cluster-api or Cluster API itself, runs beside it.`,
  flags: (command) =>
    command.requiredOption(
      '--kubeconfig <file>',
      'cluster in which the Machines of Cluster API are made; inClusterConfig in a pod',
    ),
  open: async ({ options: { kubeconfig }, clock, log }) => {
    const cluster = await openCluster({ kubeconfig, env: process.env, clock, userAgent: 'machinist-cluster-api' });
    const { transport, reader, writer } = cluster;
    return new ClusterAPIDriver({
      reader,
      writer,
      servedAs: (resource) => apiVersionOf(transport.served.known(resource)),
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

/** The command with its flags. */
export function clusterAPIDriverCommand(): Command {
  return commandOf(PROGRAM);
}
