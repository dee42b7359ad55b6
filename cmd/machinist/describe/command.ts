import { Command, Option } from 'commander';

import { kubeconfigOption, namespaceOption } from '../options.ts';

export interface DescribeOptions {
  /** A path; empty for KUBECONFIG, ~/.kube/config, or the service account of the pod. */
  readonly kubeconfig: string;
  /** Empty for the namespace of the kubeconfig's context. */
  readonly namespace: string;
  readonly output: 'text' | 'json';
}

/** The subcommand `describe`: what `kubectl describe` shows, and what it means. Its work is loaded only when it is run. */
export function describeCommand(): Command {
  const describe = new Command('describe').description('Explain the state of an object and what happens next.');
  addKind(
    describe.command('machine <name>').aliases(['machines', 'mc']),
    'Explain a Machine: its phase and why, what it is waiting for and since when, and what happens next.',
    async () => (await import('./describe.ts')).describeMachine,
  );
  addKind(
    describe.command('ironcore-machine <name>').aliases(['ironcore-machines']),
    'Explain a Machine of IronCore: its pool and state, what it is waiting for and since when, and what happens next.',
    async () => (await import('./ironcore-machine.ts')).describeIronCoreMachine,
  );
  addKind(
    describe.command('cluster-api-machine <name>').aliases(['cluster-api-machines']),
    'Explain a Machine of Cluster API: its Cluster and references, why it is waiting and since when, and what happens next.',
    async () => (await import('./cluster-api-machine.ts')).describeClusterAPIMachine,
  );
  addKind(
    describe.command('cluster-api-cluster <name>').aliases(['cluster-api-clusters']),
    'Explain a Cluster of Cluster API: its infrastructure, its Machines, where their Nodes are, why it is waiting, and what happens next.',
    async () => (await import('./cluster-api-cluster.ts')).describeClusterAPICluster,
  );
  return describe;
}

type Describe = (name: string, options: DescribeOptions) => Promise<number>;

function addKind(command: Command, description: string, load: () => Promise<Describe>): void {
  command
    .description(description)
    .addOption(namespaceOption('namespace of the object'))
    .addOption(kubeconfigOption())
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .showSuggestionAfterError()
    .action(async (name: string, options: DescribeOptions) => {
      const print = await load();
      process.exitCode = await print(name, options);
    });
}
