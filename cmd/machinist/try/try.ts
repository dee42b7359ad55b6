import { indentOf, wrapped } from '../../wrapped.ts';
import { CommandError } from '../command-error.ts';
import { runForExitCode, type Terminal } from '../terminal.ts';
import { run } from './run.ts';
import { openSite } from './site.ts';
import { undo } from './undo.ts';

export interface TryOptions {
  readonly undo: boolean;
  readonly yes: boolean;
  readonly context: string;
  readonly kubeconfig: string;
  readonly requestTimeout: number;
}

/** Runs the manager and a simulated provider until Ctrl-C, or removes what that has left. Resolves with the exit code. */
export async function tryMachinist(options: TryOptions, terminal: Terminal): Promise<number> {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) process.exit(130);
    stop.abort(new CommandError(`stopped by ${signal}; machinist try --undo removes what is there`));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  try {
    return await runForExitCode(terminal, async () => {
      const site = await openSite(options, terminal);
      await using _cluster = site.cluster;
      const { columns } = terminal;
      const out = (text: string): void => {
        for (const line of wrapped(text, columns, indentOf(text) + 4)) terminal.out(line);
      };
      await (options.undo ? undo : run)(site, options, out, stop.signal).catch((err: unknown) => {
        throw stop.signal.aborted ? stop.signal.reason : err; // what failed was interrupted
      });
    });
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, onSignal);
  }
}
