import { createInterface } from 'node:readline';

import { CommandError } from '../command-error.ts';
import type { PrintLine } from '../terminal.ts';
import { isLocal } from './plan.ts';
import type { Site } from './site.ts';
import type { TryOptions } from './try.ts';

/** Shows what will be done to which cluster, and asks. Throws CommandError unless the answer is yes. */
export async function confirm(
  { context, server }: Site,
  options: TryOptions,
  what: readonly string[],
  out: PrintLine,
  signal: AbortSignal,
): Promise<void> {
  out(`Context:  ${context}`);
  out(`Server:   ${server}`);
  out('');
  for (const [i, line] of what.entries()) out(i === 0 ? line : `  - ${line}`);
  out('');
  const isOwn = isLocal(context, server);
  if (!isOwn) out('WARNING: this cluster is not on this host. Use a cluster that nothing depends on.\n');
  if (options.yes) {
    if (isOwn || options.context !== '') return;
    throw new CommandError('the cluster is not on this host: with --yes, name it with --context');
  }
  if (!process.stdin.isTTY) throw new CommandError('there is no terminal to ask on; use --yes');
  const answer = await ask('Continue? [y/N] ', signal);
  if (!/^y(?:es)?$/i.test(answer)) throw new CommandError('nothing was changed');
}

async function ask(question: string, signal: AbortSignal): Promise<string> {
  process.stdout.write(question);
  const lines = createInterface({ input: process.stdin, terminal: false });
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new CommandError('nothing was changed')), { once: true });
      lines.once('line', (line) => resolve(line.trim())).once('close', () => resolve(''));
    });
  } finally {
    lines.close();
  }
}
