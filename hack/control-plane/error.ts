import { errnoOf, messageOf } from './errno.ts';

/**
 * Why the control plane is not there:
 * - `go-missing`, `go-too-old`: no program was found and it cannot be built here;
 * - `no-network`: the Go modules could not be fetched; `disk-full`: no room to build or to run;
 * - `not-writable`: the cache, the ledger or the temporary folder cannot be written;
 * - `build-failed`: the Go compiler said no for another reason;
 * - `binaries-unfit`: a program that the user named is missing, cannot be run here or is too old;
 * - `download-failed`, `checksum-missing`, `checksum-mismatch`: the programs could not be downloaded, or not verified;
 * - `unsupported-platform`: the programs do not exist for this operating system;
 * - `start-failed`: a program ended or did not become ready (the message has its last lines);
 * - `address-in-use`: a port that was asked for is taken;
 * - `apply-failed`: the API server refused a manifest.
 */
export type ControlPlaneErrorCode =
  | 'go-missing'
  | 'go-too-old'
  | 'no-network'
  | 'disk-full'
  | 'not-writable'
  | 'build-failed'
  | 'binaries-unfit'
  | 'download-failed'
  | 'checksum-missing'
  | 'checksum-mismatch'
  | 'unsupported-platform'
  | 'start-failed'
  | 'address-in-use'
  | 'apply-failed';

/** Says in one sentence what is wrong and what to do about it; the rest of what is known is in `cause`. */
export class ControlPlaneError extends Error {
  override readonly name = 'ControlPlaneError';
  readonly code: ControlPlaneErrorCode;

  constructor(code: ControlPlaneErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  static hasCode(err: unknown, ...codes: ControlPlaneErrorCode[]): err is ControlPlaneError {
    return err instanceof ControlPlaneError && codes.includes(err.code);
  }
}

/** Where files go, and what moves them elsewhere. */
const ELSEWHERE = 'XDG_CACHE_HOME (programs), XDG_STATE_HOME (what runs), TMPDIR (data)';

/** Gives a full disk and a folder that cannot be written their sentence; anything else comes back as it is. */
export function explainFileError(err: unknown): unknown {
  const errno = errnoOf(err);
  if (errno === 'ENOENT' && !messageOf(err).includes('mkdir')) return err;
  switch (errno) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new ControlPlaneError(
        'disk-full',
        `The disk is full (${messageOf(err)}): free some room, or choose another one by ${ELSEWHERE}.`,
        { cause: err },
      );
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOTDIR':
    case 'ENOENT': // what mkdir -p says on a read-only file system
      return new ControlPlaneError(
        'not-writable',
        `A folder cannot be written (${messageOf(err)}): choose another one by ${ELSEWHERE}.`,
        { cause: err },
      );
    default:
      return err;
  }
}
