import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/*
 * Loaded into a program with `--import`: notes every second how late its event loop was, in milliseconds, in the file that
 * LOOP_DELAY_FILE names. Only the main thread is looked at.
 */
const MS = 1e6;
const file = process.env['LOOP_DELAY_FILE'];
if (isMainThread && file !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  setInterval(() => {
    const [p50, p99] = [50, 99].map((percentile) => delay.percentile(percentile) / MS);
    writeFileSync(file, JSON.stringify({ p50, p99, max: delay.max / MS }));
  }, 1_000).unref();
}
