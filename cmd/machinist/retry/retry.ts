import { RETRY_ANNOTATION } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import { toMicroTimestamp } from '../../../pkg/base/clock/clock.ts';
import { machineClasses, machines } from '../../../pkg/kube/client/resource.ts';
import { CommandCluster } from '../command-cluster.ts';
import { MACHINE_CLASS, objectName } from '../kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { parseReferences, requireNames } from '../references.ts';
import { noticesOf, runForExitCode, type Terminal } from '../terminal.ts';
import { RETRIED_KINDS } from './command.ts';

/** Annotates Machines or MachineClasses, and says so. Resolves with the exit code. */
export async function requestRetries(
  words: readonly string[],
  options: ClusterOptions,
  terminal: Terminal,
): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const named = requireNames(parseReferences(words, RETRIED_KINDS, { mayOmitType: true }), RETRIED_KINDS);
    await using cluster = await CommandCluster.open({
      ...options,
      env: terminal.env,
      err: noticesOf(terminal),
      command: 'retry',
    });
    // With milliseconds: a second request within the same second is another one.
    const request = { metadata: { annotations: { [RETRY_ANNOTATION]: toMicroTimestamp(cluster.now()) } } };
    for (const { kind, name } of named) {
      if (kind === MACHINE_CLASS) await cluster.change(machineClasses, name, () => request);
      else await cluster.change(machines, name, () => request);
      terminal.out(`${objectName(kind, name)} retry requested`);
    }
  });
}
