/**
 * Whether `err` is a system error with one of `codes` (ENOENT, EEXIST …). Looks at the shape, not the class: errors of Node's
 * own modules belong to another realm inside a test's sandbox.
 */
export function hasErrno(err: unknown, ...codes: string[]): boolean {
  return typeof err === 'object' && err !== null && 'code' in err && codes.some((code) => code === err.code);
}

/** The words of something that was thrown, of whatever realm. */
export function messageOf(err: unknown): string {
  return typeof err === 'object' && err !== null && 'message' in err ? String(err.message) : String(err);
}
