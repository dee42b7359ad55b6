import { keepAliveDuring } from '../../pkg/base/clock/keep-alive.ts';
import { printable } from '../printable.ts';
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
  /** Draws a line below all others, which the next one replaces and '' removes; only where a person reads. */
  readonly pin?: PrintLine;
  /** Empties the screen; only where a person reads. */
  readonly clear?: () => void;
}

const CLEAR = '\u001B[H\u001B[2J\u001B[3J';
/** From the beginning of the line to its end. */
const ERASE = '\r\u001B[2K';

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
    out: (line) => console.log(printable(line)),
    err: (line) => console.error(printable(line)),
    env,
    ...(isTTY && {
      columns: stdout.columns,
      rows: stdout.rows,
      clear: () => void stdout.write(CLEAR),
      ...pinned((text) => void stdout.write(text)),
    }),
    hasColour: isTTY && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb',
  };
}

/** Where a person is told what is waited for; a program that reads is not. */
export function noticesOf({ columns, err }: Terminal): PrintLine | undefined {
  return columns === undefined ? undefined : err;
}

/** Lines above one that stays below them. */
export function pinned(write: (text: string) => void): Required<Pick<Terminal, 'out' | 'err' | 'pin'>> {
  let bottom = '';
  const put = (line: string): void => write(`${bottom === '' ? '' : ERASE}${printable(line)}\n${bottom}`);
  const pin = (line: string): void => {
    const next = printable(line);
    if (next !== bottom) write(`${ERASE}${next}`);
    bottom = next;
  };
  return { out: put, err: put, pin };
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
