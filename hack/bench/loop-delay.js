import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/*
 * Loaded into a program with `--import`: appends each second how late its event loop was in that second at worst, in milliseconds, to the
 * file that LOOP_DELAY_FILE names. Only the main thread is looked at.
 * JavaScript, because Node takes 20 MB to read anything else.
 */
const NS_IN_MS = 1e6;
const file = process.env['LOOP_DELAY_FILE'];
if (isMainThread && file !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  setInterval(() => {
    appendFileSync(file, `${(delay.max / NS_IN_MS).toFixed(0)}\n`);
    delay.reset();
  }, 1_000).unref();
}
