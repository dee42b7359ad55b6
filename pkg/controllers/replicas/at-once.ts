import PQueue from 'p-queue';

/**
 * Runs `work` for every item, at most `limit` at once, and waits for all of them. Afterwards it throws the first error in
 * the order of the items: one failure stops nothing.
 */
export async function atOnce<T>(limit: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const pool = new PQueue({ concurrency: limit });
  const results = await Promise.allSettled(items.map((item) => pool.add(() => work(item))));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
