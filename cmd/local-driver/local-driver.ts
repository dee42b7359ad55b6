import { SystemClock } from '../../pkg/clock/system-clock.ts';
import { FencingFile } from '../../pkg/driver/fencing-file.ts';
import { FencingGuard } from '../../pkg/driver/fencing.ts';
import { DriverServer } from '../../pkg/driver/grpc/server.ts';
import { count, driverCommand, runCommand, untilTerminated, type CommonOptions } from '../../pkg/drivers/command.ts';
import { LocalDriver } from '../../pkg/drivers/local/driver.ts';
import { StateDirectory } from '../../pkg/drivers/state-directory.ts';
import { createLogger } from '../../pkg/log/logger.ts';

interface Options extends CommonOptions {
  readonly stateDirectory: string;
  readonly kubeletBinary: string;
  readonly capacity: number;
}

const DESCRIPTION = `A driver whose machines are kubelets on this host (Linux, no root needed).

The Secret's userData is the kubeconfig, as YAML or JSON, with which a kubelet asks for its own certificate;
its token is written <<BOOTSTRAP_TOKEN>>. Machines outlive the driver and are found again when it starts.`;

/** Runs the local driver until SIGTERM; its machines run on. */
export async function runLocalDriver(argv: readonly string[]): Promise<void> {
  const command = driverCommand('local-driver', DESCRIPTION)
    .requiredOption('--state-directory <path>', 'where machines, their logs and fencing tokens are kept')
    .requiredOption('--kubelet-binary <file>', 'the program kubemark')
    .option('--capacity <n>', 'machines that may exist at once, about 80 MB each', count, 50)
    .action(serve);
  await runCommand(command, argv);
}

async function serve(options: Options): Promise<void> {
  const clock = new SystemClock();
  const log = createLogger(options.logLevel);
  const { address, kubeletBinary, capacity } = options;
  using state = StateDirectory.open(options.stateDirectory);
  const fencing = await FencingGuard.open({ clock, store: new FencingFile(state.file('fencing.json')) });
  const driver = new LocalDriver({ stateDirectory: state.path, kubeletBinary, capacity, clock, log });
  await using server = await DriverServer.start({ driver, fencing, address, clock, log });
  log.info({ address: server.address }, 'serving');

  const signal = await untilTerminated();
  log.info({ signal }, 'stopping');
  await driver.close();
}
