import { Command, Option } from 'commander';

import { withFlags } from '../../../pkg/operator/config/command-line.ts';
import { WORLD_FLAGS } from '../../../pkg/worlds/index.ts';

/** What `preflight` takes besides the flags of `machinist run`. */
export interface PreflightOptions {
  /** In whose name it is asked; undefined: of the kubeconfig's user. */
  readonly as?: string;
  readonly output: 'text' | 'json';
}

/** The subcommand `preflight`: what a start with these flags would find missing. Its work is loaded only when it is run. */
export function preflightCommand(): Command {
  const command = new Command('preflight')
    .description(
      'Check, from any host, the requirements of "machinist run" with the same flags, and report what is missing.',
    )
    .addOption(
      new Option(
        '--as <user>',
        'user to check, such as system:serviceaccount:machinist:machinist; all requests impersonate this user',
      ),
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'));
  return withFlags(command, 'machinist run', WORLD_FLAGS, async ({ config }) => {
    const { preflight } = await import('./preflight.ts');
    process.exitCode = await preflight(config, command.opts<PreflightOptions>());
  });
}
