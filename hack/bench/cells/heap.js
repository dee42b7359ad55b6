import { writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/*
 * Loaded into a program with `--import` and `--expose-gc`: at SIGUSR2 collects garbage, and writes the bytes in use of the heap and the number
 * of timers and other resources that keep the event loop busy, as JSON, to the file that HEAP_FILE names. Only of the main thread.
 */
const file = process.env['HEAP_FILE'];
if (isMainThread && file !== undefined) {
  process.on('SIGUSR2', () => {
    for (let i = 0; i < 3; i++) globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(file, JSON.stringify({ heapUsed, external, resources: process.getActiveResourcesInfo().length }));
  });
}
