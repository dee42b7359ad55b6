/** What many wait for ends with its own deadline, never with that of one of them. */
export const SHARED_MS = 60_000;

/** What `promise` becomes; rejects with the signal's reason when that is aborted first, and leaves the promise to others. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
