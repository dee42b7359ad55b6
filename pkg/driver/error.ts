import { shortText } from '../apis/short-text.ts';

/** Codes of the original: gRPC's 0-16 and 17, by number and name. What follows each of them: retry.ts. */
export const DRIVER_CODES = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
  'Uninitialized',
] as const;

export type DriverCode = (typeof DRIVER_CODES)[number];

/** What a driver answered instead of a plain success; some failures come together with a result. */
export class DriverError extends Error {
  override readonly name = 'DriverError';
  readonly code: DriverCode;
  /** The provider's own words, without code; of a long text the middle is left out. */
  readonly detail: string;
  /** Scratch space that the driver wants kept; undefined keeps or clears it as the code says. */
  readonly lastKnownState: string | undefined;
  /** When the provider asks us to come back. */
  readonly retryAfterMs: number | undefined;
  /** The driver knows that a retry with the same input cannot succeed. */
  readonly terminal: boolean;
  /** What was known of the VM all the same (Uninitialized carries it). */
  readonly result: { providerID?: string; nodeName?: string } | undefined;
  /** True when the driver never answered: the mutation may or may not have happened. */
  readonly unanswered: boolean;
  /** True when it never answered because its time ran out. */
  readonly timedOut: boolean;
  /** The highest fencing token that the driver has seen, when it refused the call for a lower one. */
  readonly highestToken: bigint | undefined;

  constructor(
    code: DriverCode,
    detail: string,
    options: {
      lastKnownState?: string;
      retryAfterMs?: number;
      terminal?: boolean;
      result?: { providerID?: string; nodeName?: string };
      unanswered?: boolean;
      timedOut?: boolean;
      highestToken?: bigint;
      cause?: unknown;
    } = {},
  ) {
    const short = shortText(detail);
    // The text form of the original: downstream consumers read it from lastOperation.description.
    super(
      `machine codes error: code = [${code}] message = [${short}]`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.detail = short;
    this.lastKnownState = options.lastKnownState;
    this.retryAfterMs = options.retryAfterMs;
    this.terminal = options.terminal ?? false;
    this.result = options.result;
    this.unanswered = options.unanswered ?? false;
    this.timedOut = options.timedOut ?? false;
    this.highestToken = options.highestToken;
  }

  static hasCode(err: unknown, ...codes: DriverCode[]): err is DriverError {
    return err instanceof DriverError && codes.includes(err.code);
  }
}
