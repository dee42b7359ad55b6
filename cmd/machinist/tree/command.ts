import { Command } from 'commander';

import { MACHINE_DEPLOYMENT } from '../kinds.ts';
import {
  allNamespacesOption,
  type ClusterOptions,
  outputOption,
  type OutputFormat,
  type SelectionOptions,
  selectorOption,
  withClusterOptions,
} from '../options.ts';
import { ReferenceArgument } from '../reference-argument.ts';
import { ownTerminal } from '../terminal.ts';

export interface TreeOptions extends ClusterOptions, SelectionOptions {
  readonly output: OutputFormat;
  readonly watch: boolean;
}

export const TREE_KINDS = [MACHINE_DEPLOYMENT] as const;

/** The subcommand `tree`: what belongs to a MachineDeployment, and what it waits for. */
export function treeCommand(): Command {
  const tree = new Command('tree')
    .description(
      'Show MachineDeployments with their MachineSets and Machines, their Nodes and VMs, and what each of them is waiting for.',
    )
    .addArgument(new ReferenceArgument('[machinedeployment...]', TREE_KINDS, { mayOmitType: true }))
    .option('-w, --watch', 'show changes until interrupted', false)
    .addOption(allNamespacesOption())
    .addOption(selectorOption())
    .addOption(outputOption(['text', 'json', 'yaml', 'name']));
  return withClusterOptions(tree).action(async (words: string[], options: TreeOptions) => {
    const { showTree } = await import('./show-tree.ts');
    process.exitCode = await showTree(words, options, ownTerminal());
  });
}
