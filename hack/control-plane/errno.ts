/**
 * The code of a system error (`ENOENT`, `EADDRINUSE` …); undefined for anything else. Looks at the shape, not the class:
 * errors of Node's own modules belong to another realm inside a test's sandbox.
 */
export function errnoOf(err: unknown): string | undefined {
  if (typeof err !== 'object' || err === null || !('code' in err)) return undefined;
  return typeof err.code === 'string' ? err.code : undefined;
}

/** What an unknown thrown value says of itself. */
export function messageOf(err: unknown): string {
  return typeof err === 'object' && err !== null && 'message' in err ? String(err.message) : String(err);
}
