import { Argument, Command } from 'commander';

import { ownTerminal, type Terminal } from '../terminal.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** What the scripts call with all that was typed. */
export const COMPLETE = '__complete';
/** What the last line of an answer begins with; Cobra's numbers, so that kubectl understands it: 0 allows paths, 4 does not. */
const DIRECTIVE = ':';

/** The subcommand `completion`: what a shell reads to complete the words of this program. */
export function completionCommand(): Command {
  return new Command('completion')
    .description('Print a script that completes commands, options, and names of objects in a shell.')
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
Load it in the current shell:
  bash: source <(machinist completion bash)
  zsh:  source <(machinist completion zsh)
  fish: machinist completion fish | source`,
    )
    .action(async (shell: Shell) => {
      const { SCRIPTS } = await import('./scripts.ts');
      ownTerminal().out(SCRIPTS[shell].trimEnd());
    });
}

/** Answers a script: a line for each candidate, with a description after a tab, and Cobra's directive. */
export async function answerCompletion(
  program: Command,
  words: readonly string[],
  { out, env }: Terminal,
): Promise<void> {
  const [{ complete }, { liveLookup }] = await Promise.all([import('./complete.ts'), import('./lookup.ts')]);
  const { candidates, isPath } = await complete(program, words, liveLookup(env));
  for (const { value, description = '' } of candidates) out(description === '' ? value : `${value}\t${description}`);
  out(`${DIRECTIVE}${isPath ? 0 : 4}`);
}
