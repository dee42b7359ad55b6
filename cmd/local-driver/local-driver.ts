import { count } from '../../pkg/drivers/command.ts';
import { LocalDriver } from '../../pkg/drivers/local/driver.ts';
import { serveDriver } from '../../pkg/drivers/serve-driver.ts';

interface Options {
  readonly kubeletBinary: string;
  readonly capacity: number;
}

const DESCRIPTION = `A driver whose machines are kubelets on this host (Linux, no root needed).

The Secret's userData is the kubeconfig, as YAML or JSON, with which a kubelet asks for its own certificate;
its token is written <<BOOTSTRAP_TOKEN>>. Machines outlive the driver and are found again when it starts.`;

/** Runs the local driver until SIGTERM; its machines run on. */
export async function runLocalDriver(argv: readonly string[]): Promise<void> {
  await serveDriver<Options>(
    {
      name: 'local-driver',
      description: DESCRIPTION,
      flags: (command) =>
        command
          .requiredOption('--kubelet-binary <file>', 'the program kubemark')
          .option('--capacity <n>', 'machines that may exist at once, about 80 MB each', count, 50),
      open: ({ options: { kubeletBinary, capacity }, stateDirectory, clock, log }) =>
        new LocalDriver({ stateDirectory, kubeletBinary, capacity, clock, log }),
    },
    argv,
  );
}
