import { keepAliveDuring } from '../../pkg/clock/keep-alive.ts';
import { failureText } from './command-error.ts';

/** Where a command writes a line to. */
export type PrintLine = (line: string) => void;

export interface Terminal {
  readonly out: PrintLine;
  readonly err: PrintLine;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Undefined where no person reads: a text is then not broken into lines, nor drawn again in its place. */
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  readonly hasColour?: boolean;
}

/** That of this process. */
export function ownTerminal(): Terminal {
  const { env, stdout } = process;
  // A reader that has seen enough, such as `head`, is no failure.
  stdout.once('error', (err: NodeJS.ErrnoException) => {
    if (err.code !== 'EPIPE') throw err;
    process.exit(0);
  });
  const { isTTY } = stdout;
  return {
    out: (line) => console.log(line),
    err: (line) => console.error(line),
    env,
    ...(isTTY && { columns: stdout.columns, rows: stdout.rows }),
    hasColour: isTTY && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb',
  };
}

/** Does the work of a command. Resolves with the exit code: 0, or 1 when something went wrong, which was then said in one line. */
export async function runForExitCode({ err: complain }: Terminal, work: () => Promise<void>): Promise<number> {
  try {
    await keepAliveDuring(work);
    return 0;
  } catch (err) {
    const text = failureText(err);
    if (text === undefined) throw err;
    complain(text);
    return 1;
  }
}
