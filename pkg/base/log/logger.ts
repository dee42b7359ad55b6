import { pino } from 'pino';

import { BoundedOutput } from './bounded-output.ts';
import { textLine } from './text-line.ts';

/** The fields that log lines may carry; the same word means the same thing everywhere. */
export interface LogFields {
  controller?: string | undefined;
  key?: string | undefined;
  reconcileID?: string | undefined;
  machine?: string | undefined;
  node?: string | undefined;
  cluster?: string | undefined;
  code?: string | number | undefined;
  /** Written as whole milliseconds. */
  ms?: number | undefined;
  err?: unknown;
  [field: string]: unknown;
}

/**
 * Structured log. Messages are constant, lower-case and past tense; values go into fields. error = someone must look;
 * warn = we gave something up; info = the world changed because of us; debug = each pass.
 */
export interface Logger {
  error(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  debug(fields: LogFields, message: string): void;
  child(fields: LogFields): Logger;
  /** How many lines were lost, because nobody took them, since the start; absent where that is not counted. */
  lostLines?(): number;
}

/** Level names, in falling order of urgency. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'silent';

/** Where secrets could stand in logged objects; their values never reach the output. */
const REDACTED = [
  'providerSpec',
  '*.providerSpec',
  'userData',
  '*.userData',
  'secret',
  '*.secret',
  'data',
  '*.data',
  'token',
  '*.token',
  'authorization',
  '*.authorization',
];

/** That a line cannot be written must not end the process: to log that would be the next such line, without end. */
const lineLost = (): void => undefined;

/** How lines look: JSON for programs, text for people. */
export type LogFormat = 'json' | 'text';

export interface LogOutput {
  /** Standard output unless told otherwise. */
  readonly destination?: NodeJS.WritableStream;
  /** JSON unless told otherwise. */
  readonly format?: LogFormat;
}

/**
 * The process's logger: one line for each message. An error is its message, class and code; its stack is written at level debug only.
 * Anyone who reads the lines may go away (EPIPE): they are lost then, and nothing else. One who stands still has 4 MiB of them kept.
 */
export function createLogger(level: LogLevel, output: LogOutput = {}): Logger {
  const { destination = process.stdout, format = 'json' } = output;
  if (!destination.listeners('error').includes(lineLost)) destination.on('error', lineLost);
  const bounded: BoundedOutput = new BoundedOutput(destination, (lines) =>
    log.warn({ lines }, 'dropped log lines because standard output was blocked'),
  );
  const log: Logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: {
        ms: whole,
        retryInMs: whole,
        skewMs: whole,
        err: (err: unknown) => loggedError(err, level === 'debug'),
      },
      redact: { paths: REDACTED, censor: '[redacted]' },
    },
    { write: (line: string) => bounded.write(format === 'json' ? line : textLine(line)) },
  ) as unknown as Logger; // it takes any further member for a level
  return Object.assign(log, { lostLines: () => bounded.lost });
}

/** Of times in milliseconds: `ms` is how long something took or has lasted; any other says in its name what it is. */
function whole(ms: unknown): unknown {
  return typeof ms === 'number' ? Math.round(ms) : ms;
}

/** What is written of an error: nothing but its own words, as others may hang anything on it. */
function loggedError(err: unknown, withStack: boolean): unknown {
  if (typeof err !== 'object' || err === null || !('message' in err)) return err;
  const { name, message, code, stack, cause } = err as Error & { code?: unknown };
  const because = cause instanceof Error && !message.includes(cause.message) ? `: ${cause.message}` : '';
  return {
    type: name,
    message: `${message}${because}`,
    ...(typeof code === 'string' || typeof code === 'number' ? { code: String(code) } : {}),
    ...(withStack ? { stack } : {}),
  };
}

/** A logger that says nothing, for tests and optional parts. */
export const silentLogger: Logger = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
  child: () => silentLogger,
};
