import { readFileSync } from 'node:fs';

import { Child, type ChildOptions } from './child.ts';

/** How a program is kept running. */
export interface KeepRunningOptions extends Omit<ChildOptions, 'onUnexpectedEnd'> {
  /** How often it is started again before it is given up. */
  readonly mostRestarts: number;
  readonly print: (line: string) => void;
  /** Called with one sentence and the end of its log when it is given up. */
  readonly giveUp: (why: string) => void;
}

/** How long a program rests before it is started again. */
export const PAUSE_MS = 1_000;

/** Starts a program, and again whenever it ends by itself, as a cluster does it with a Deployment. Returns what stops it. */
export function keepRunning(options: KeepRunningOptions): () => Promise<void> {
  const { name, logFile, mostRestarts, print, giveUp } = options;
  let restarts = 0;
  let isStopping = false;
  let pause: NodeJS.Timeout | undefined;
  const start = (): Child =>
    new Child({
      ...options,
      onUnexpectedEnd(how, isKilled) {
        // What somebody else killed has not failed.
        const what = `${name} ${how}${isKilled ? '' : lastError(logFile)}`;
        if (isStopping) return;
        if (restarts === mostRestarts) return giveUp(`${what}. Its log ends with:\n${tailOf(logFile)}`);
        restarts += 1;
        print(`${what}; restarting it (restart ${restarts} of at most ${mostRestarts}, log: ${logFile})`);
        pause = setTimeout(() => (child = start()), PAUSE_MS);
      },
    });
  let child = start();
  return async () => {
    isStopping = true;
    clearTimeout(pause);
    await child.stop();
  };
}

/** The last thing that the program called an error, if any; its log has a JSON object a line. */
function lastError(logFile: string): string {
  const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n');
  const last = lines.findLast((line) => line.startsWith('{"level":"error"'));
  if (last === undefined) return '';
  const { msg, err } = JSON.parse(last) as { msg?: string; err?: string | { message?: string } };
  const why = typeof err === 'string' ? err : err?.message;
  return ` (${[msg, why].filter((part) => part !== undefined).join(': ')})`;
}

/** The last lines of a log. */
export function tailOf(logFile: string): string {
  return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-8).join('\n');
}
