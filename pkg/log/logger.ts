import { pino } from 'pino';

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

/**
 * The process's logger: one JSON object a line on `destination` (standard output unless told otherwise). Anyone who reads that may
 * go away (EPIPE): lines are lost then, and nothing else.
 */
export function createLogger(level: LogLevel, destination: NodeJS.WritableStream = process.stdout): Logger {
  if (!destination.listeners('error').includes(lineLost)) destination.on('error', lineLost);
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { ms: (ms: unknown) => (typeof ms === 'number' ? Math.round(ms) : ms) },
      redact: { paths: REDACTED, censor: '[redacted]' },
    },
    destination,
  );
}

/** A logger that says nothing, for tests and optional parts. */
export const silentLogger: Logger = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
  child: () => silentLogger,
};
