/** Longer than anything waits; a timer that fires in between does no harm. */
const KEEP_ALIVE_MS = 60_000;

/**
 * Keeps the process alive until `run` has settled. The clock's timers do not: a command that only waits for its next attempt to
 * reach a server would end in the middle, with Node's exit code 13.
 */
export async function keepAliveDuring<T>(run: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => undefined, KEEP_ALIVE_MS);
  try {
    return await run();
  } finally {
    clearInterval(timer);
  }
}
