import { InvalidArgumentError, Option } from 'commander';

import { parseDuration } from '../../pkg/apis/duration.ts';

/** Which namespace; the empty text for that of the kubeconfig's context. */
export function namespaceOption(description: string): Option {
  return new Option('-n, --namespace <name>', description).default('', "the context's");
}

/** Which cluster; the empty text for what the environment says. */
export function kubeconfigOption(): Option {
  const description = 'kubeconfig of the cluster that has the object';
  return new Option('--kubeconfig <path>', description).default('', 'KUBECONFIG, ~/.kube/config');
}

/** How long a command waits, in milliseconds; 0 is forever. */
export function timeoutOption(): Option {
  return new Option('--timeout <duration>', 'time to wait before giving up, such as 30s or 10m; 0 waits forever')
    .default(0, '0s')
    .argParser(durationMs);
}

function durationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 0) throw new InvalidArgumentError('Expected a duration such as 30s, 10m or 1h30m.');
  return ms;
}
