import { count } from '../../pkg/drivers/command.ts';
import { LocalDriver } from '../../packages/providers/local/driver.ts';
import { serveDriver } from '../../pkg/drivers/serve-driver.ts';

interface Options {
  readonly kubeletBinary: string;
  readonly capacity: number;
}

const DESCRIPTION = `A driver that runs kubelets on this host as machines (Linux, no root required).

The userData of the Secret is the kubeconfig, as YAML or JSON, with which a kubelet requests its certificate.
Write its token as <<BOOTSTRAP_TOKEN>>. Machines outlive the driver, which finds them again when it starts.`;

/** Runs the local driver until SIGTERM; its machines run on. */
export async function runLocalDriver(argv: readonly string[]): Promise<void> {
  await serveDriver<Options>(
    {
      name: 'local-driver',
      description: DESCRIPTION,
      flags: (command) =>
        command
          .requiredOption('--kubelet-binary <file>', 'path of the kubemark binary')
          .option('--capacity <n>', 'maximum number of machines, about 80 MB each', count, 50),
      open: ({ options: { kubeletBinary, capacity }, stateDirectory, clock, log }) =>
        new LocalDriver({ stateDirectory, kubeletBinary, capacity, clock, log }),
    },
    argv,
  );
}
