import { Command, Option } from 'commander';

import { kubeconfigOption, namespaceOption } from '../options.ts';

/** What `describe machine` was asked for. */
export interface DescribeOptions {
  /** A path; empty for KUBECONFIG, ~/.kube/config, or the service account of the pod. */
  readonly kubeconfig: string;
  /** Empty for the namespace of the kubeconfig's context. */
  readonly namespace: string;
  readonly output: 'text' | 'json';
}

/** The subcommand `describe`: what `kubectl describe` shows, and what it means. Its work is loaded only when it is run. */
export function describeCommand(): Command {
  const describe = new Command('describe').description('Explain where an object stands, and what happens next.');
  describe
    .command('machine <name>')
    .aliases(['machines', 'mc'])
    .description('Explain a Machine: its phase, why, what it waits for, since when, and what happens next.')
    .addOption(namespaceOption('namespace of the Machine'))
    .addOption(kubeconfigOption())
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(['text', 'json']).default('text'))
    .showSuggestionAfterError()
    .action(async (name: string, options: DescribeOptions) => {
      const { describeMachine } = await import('./describe.ts');
      process.exitCode = await describeMachine(name, options);
    });
  return describe;
}
