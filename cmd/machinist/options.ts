import { type Command, InvalidArgumentError, Option } from 'commander';

import { parseDuration } from '../../pkg/apis/duration.ts';

/** Which cluster and namespace a command reads, and how long it waits for an answer. Empty texts and 0 leave it to the environment. */
export interface ClusterOptions {
  /** A path; empty for KUBECONFIG, ~/.kube/config, or the service account of the pod. */
  readonly kubeconfig?: string;
  /** Empty for the current context. */
  readonly context?: string;
  /** Empty for the namespace of the context. */
  readonly namespace?: string;
  /** In milliseconds; 0 for the default. */
  readonly requestTimeout?: number;
}

/** Which objects of a kind are meant, besides those that are named. */
export interface SelectionOptions {
  readonly allNamespaces?: boolean;
  /** A selector of labels. */
  readonly selector?: string;
}

/** Adds the options of every command that talks to a cluster. `object`: what it is about. */
export function withClusterOptions(command: Command, object = 'object'): Command {
  return command
    .addOption(new Option('-n, --namespace <name>', `namespace of the ${object}`).default('', "the context's"))
    .addOption(contextOption())
    .addOption(kubeconfigOption(`cluster that has the ${object}`))
    .addOption(requestTimeoutOption())
    .showSuggestionAfterError();
}

export function contextOption(): Option {
  return new Option('--context <name>', 'context of the kubeconfig').default('', 'the current one');
}

export function kubeconfigOption(of: string): Option {
  return new Option('--kubeconfig <path>', `kubeconfig of the ${of}`).default('', 'KUBECONFIG, ~/.kube/config');
}

export function requestTimeoutOption(): Option {
  return new Option('--request-timeout <duration>', 'time to wait for each response of the API server')
    .default(0, '30s')
    .argParser(durationMs);
}

export function allNamespacesOption(): Option {
  return new Option('-A, --all-namespaces', 'select objects in all namespaces').conflicts('namespace');
}

export function selectorOption(): Option {
  return new Option('-l, --selector <selector>', 'select objects by label, such as -l pool=workers');
}

/** How a command prints what it has found. */
export type OutputFormat = 'text' | 'json' | 'yaml' | 'name';

export function outputOption(formats: readonly OutputFormat[]): Option {
  return new Option('-o, --output <format>', 'output format').choices(formats).default('text');
}

/** Where the processes of the manager are asked. */
export interface ManagerOptions {
  /** Of its pods and Leases; empty: that of the Machines. */
  readonly managerNamespace?: string;
  /** Processes that run elsewhere. */
  readonly url: readonly string[];
}

export function managerNamespaceOption(): Option {
  return new Option('--manager-namespace <name>', 'namespace of the pods and Leases of the manager')
    .default('', 'that of the machines')
    .env('MACHINIST_MANAGER_NAMESPACE');
}

/** Processes of the manager that run elsewhere than in pods of the namespace. */
export function processURLOption(): Option {
  return new Option(
    '--url <url>',
    'process of the manager to ask instead of its pods, such as http://localhost:10258; may be repeated',
  )
    .default([], '')
    .env('MACHINIST_URL')
    .argParser((url: string, before: readonly string[]) => [...before, url]);
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
