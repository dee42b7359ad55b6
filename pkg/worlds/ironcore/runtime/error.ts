import { shortText } from '../../../apis/short-text.ts';
import { DRIVER_CODES, type DriverCode } from '../../../driver/error.ts';

/** Codes that a call to a runtime can end with: those of gRPC. */
export type RuntimeCode = Exclude<DriverCode, 'OK' | 'Uninitialized'>;

/** Ends of a call after which nobody knows whether the runtime did what it was asked. */
const MAY_HAVE_HAPPENED: ReadonlySet<RuntimeCode> = new Set([
  'Canceled',
  'Unknown',
  'DeadlineExceeded',
  'Internal',
  'Unavailable',
  'DataLoss',
]);

export class RuntimeError extends Error {
  override readonly name = 'RuntimeError';
  readonly code: RuntimeCode;
  /** Why, without the code; of a long text the middle is left out. */
  readonly detail: string;
  /** Whether something was to be changed, not looked at. */
  readonly isMutation: boolean;
  /** True for a mutation that may or may not have happened. */
  readonly unanswered: boolean;

  constructor(method: string, code: RuntimeCode, detail: string, options: { isMutation: boolean; cause?: unknown }) {
    const short = shortText(detail);
    super(`${method}: ${code}: ${short}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.detail = short;
    this.isMutation = options.isMutation;
    this.unanswered = options.isMutation && MAY_HAVE_HAPPENED.has(code);
  }

  static hasCode(err: unknown, ...codes: RuntimeCode[]): err is RuntimeError {
    return err instanceof RuntimeError && codes.includes(err.code);
  }
}

/** Name of a gRPC status; one that nobody knows, or OK in an error, is Unknown. */
export function runtimeCodeOf(status: number): RuntimeCode {
  const name = DRIVER_CODES[status];
  return name === undefined || name === 'OK' || name === 'Uninitialized' ? 'Unknown' : name;
}
