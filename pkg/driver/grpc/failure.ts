import { messageOf } from '../errno.ts';
import { DRIVER_CODES, DriverError, type DriverCode } from '../error.ts';
import type { Duration } from './gen/google/protobuf/duration.ts';
import type { Code, Failure, VirtualMachine } from './gen/machine/driver/v1/driver.ts';

export function toDuration(ms: number): Duration {
  const seconds = Math.floor(ms / 1000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1_000_000) };
}

/** Milliseconds of a protobuf Duration; undefined for none. */
export function fromDuration(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  return Number(duration.seconds) * 1000 + duration.nanos / 1_000_000;
}

/** What a driver's error becomes on the wire. Anything but a DriverError is a fault of the driver: Internal. */
export function toFailure(err: unknown): Failure {
  if (!(err instanceof DriverError)) {
    const nothing = { lastKnownState: '', retryAfter: undefined, terminal: false, fencingToken: 0n };
    return { code: numberOf('Internal'), message: messageOf(err), ...nothing };
  }
  return {
    code: numberOf(err.code),
    message: err.detail,
    lastKnownState: err.lastKnownState ?? '',
    retryAfter: isWait(err.retryAfterMs) ? toDuration(err.retryAfterMs) : undefined,
    terminal: err.terminal,
    fencingToken: err.highestToken ?? 0n,
  };
}

/** Whether anybody can wait for so long: what a provider has said may have been read as NaN. */
function isWait(ms: number | undefined): ms is number {
  return Math.abs(ms ?? Number.NaN) <= Number.MAX_SAFE_INTEGER;
}

/** What a failure on the wire means here. A code that this version does not know, or OK in a failure, is Unknown. */
export function fromFailure(failure: Failure, vm?: VirtualMachine): DriverError {
  const retryAfterMs = fromDuration(failure.retryAfter);
  return new DriverError(nameOf(failure.code), failure.message, {
    terminal: failure.terminal,
    ...(failure.lastKnownState === '' ? {} : { lastKnownState: failure.lastKnownState }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(failure.fencingToken === 0n ? {} : { highestToken: failure.fencingToken }),
    ...(vm === undefined ? {} : { result: toldOf(vm) }),
  });
}

/** What is empty was not told: what is known stands. */
function toldOf({ providerId, nodeName }: VirtualMachine): NonNullable<DriverError['result']> {
  return {
    ...(providerId === '' ? {} : { providerID: providerId }),
    ...(nodeName === '' ? {} : { nodeName }),
  };
}

/** Number of a code on the wire; the order of DRIVER_CODES is that of the contract. */
function numberOf(code: DriverCode): Code {
  return DRIVER_CODES.indexOf(code) as Code; // 0-17, as the enum
}

function nameOf(code: number): DriverCode {
  const name = DRIVER_CODES[code];
  return name === undefined || name === 'OK' ? 'Unknown' : name;
}
