import { openCluster } from '../../pkg/drivers/cluster.ts';
import { KwokDriver } from '../../pkg/drivers/kwok/driver.ts';
import { serveDriver } from '../../pkg/drivers/serve-driver.ts';

interface Options {
  readonly kubeconfig: string;
}

const DESCRIPTION = `A driver whose machines are Nodes that kwok keeps alive: hundreds of them, with their pods, in one process.

kwok itself runs beside it, for Nodes with annotation kwok.x-k8s.io/node=fake. The Nodes are all that the driver knows.`;

/** Runs the driver for kwok until SIGTERM; its machines stay. */
export async function runKwokDriver(argv: readonly string[]): Promise<void> {
  await serveDriver<Options>(
    {
      name: 'kwok-driver',
      description: DESCRIPTION,
      flags: (command) =>
        command.requiredOption('--kubeconfig <file>', 'cluster whose Nodes the machines are; inClusterConfig in a pod'),
      open: async ({ options: { kubeconfig }, clock, log }) => {
        const cluster = await openCluster({ kubeconfig, env: process.env, clock, userAgent: 'machinist-kwok' });
        const { transport, reader, writer } = cluster;
        return new KwokDriver({ reader, writer, log, close: () => transport.close() });
      },
    },
    argv,
  );
}
