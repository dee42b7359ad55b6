import { openDriverCluster } from '../../pkg/drivers/cluster.ts';
import { KwokDriver } from '../../packages/providers/kwok/driver.ts';
import { serveDriver } from '../../pkg/drivers/serve-driver.ts';

interface Options {
  readonly kubeconfig: string;
}

const DESCRIPTION = `A driver that creates Nodes simulated by kwok: hundreds of them, with their pods, in one process.

kwok itself must also run, for Nodes with annotation kwok.x-k8s.io/node=fake. The driver keeps no state besides the Nodes.`;

/** Runs the driver for kwok until SIGTERM; its machines stay. */
export async function runKwokDriver(argv: readonly string[]): Promise<void> {
  await serveDriver<Options>(
    {
      name: 'kwok-driver',
      description: DESCRIPTION,
      flags: (command) =>
        command.requiredOption(
          '--kubeconfig <file>',
          'kubeconfig of the cluster in which to create Nodes; inClusterConfig in a pod',
        ),
      open: async ({ options: { kubeconfig }, clock, log }) => {
        const cluster = await openDriverCluster({ kubeconfig, env: process.env, clock, userAgent: 'machinist-kwok' });
        const { transport, reader, writer } = cluster;
        return new KwokDriver({ reader, writer, log, close: () => transport.close() });
      },
    },
    argv,
  );
}
