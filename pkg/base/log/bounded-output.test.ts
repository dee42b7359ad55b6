import { Writable } from 'node:stream';

import { expect, test } from '@jest/globals';

import { createLogger } from './logger.ts';

/** A stream that takes nothing until it is told to. */
class Stuck extends Writable {
  readonly taken: string[] = [];
  #isStuck = true;
  #next: () => void = () => undefined;

  constructor() {
    super({ decodeStrings: false });
  }

  override _write(chunk: string, _encoding: string, done: () => void): void {
    this.taken.push(chunk);
    if (this.#isStuck) this.#next = done;
    else done();
  }

  flow(): void {
    this.#isStuck = false;
    this.#next();
  }

  stick(): void {
    this.#isStuck = true;
  }
}

const MiB = 1_048_576;
const text = 'x'.repeat(1_000);
const message = (line: string): unknown => {
  const { msg, lines, level } = JSON.parse(line) as Record<string, unknown>;
  return lines === undefined ? msg : { msg, lines, level };
};

test('of a reader that stands still at most 4 MiB of lines are kept; the others are counted, and told once it goes on', async () => {
  const destination = new Stuck();
  const log = createLogger('info', { destination });
  for (let i = 0; i < 10_000; i++) log.info({ text }, 'said');
  const [kept, lost] = [destination.writableLength, log.lostLines?.() ?? 0];
  destination.flow();
  await new Promise((resolve) => setImmediate(resolve));
  log.info({}, 'went on');

  expect(kept).toBeGreaterThanOrEqual(4 * MiB);
  expect(kept).toBeLessThan(4 * MiB + 2_000);
  expect(destination.taken.length - 2 + lost).toBe(10_000);
  expect(destination.taken.slice(-2).map(message)).toEqual([
    { msg: 'dropped log lines because standard output was blocked', lines: lost, level: 'warn' },
    'went on',
  ]);
});

test('each loss is told by itself, and a stream that flows without a loss is not', async () => {
  const destination = new Stuck();
  const log = createLogger('info', { destination, format: 'text' });
  const told: number[] = [];
  for (const count of [10_000, 100, 10_000]) {
    destination.stick();
    const before = log.lostLines?.() ?? 0;
    for (let i = 0; i < count; i++) log.info({ text }, 'said');
    told.push((log.lostLines?.() ?? 0) - before);
    destination.flow();
    await new Promise((resolve) => setImmediate(resolve));
  }

  const lines = destination.taken.filter((line) => line.includes('dropped log lines'));
  expect(told.map((lost) => lost > 0)).toEqual([true, false, true]);
  expect(lines.map((line) => Number(/lines=(\d+)/.exec(line)?.[1]))).toEqual([told[0], told[2]]);
});
