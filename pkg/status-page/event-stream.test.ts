import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { silentLogger } from '../base/log/logger.ts';
import type { EncodedSnapshot } from './changes.ts';
import { EventStream, MAX_READERS, type StreamSink } from './event-stream.ts';

const SECOND = 1_000;

/** A response that a test reads, and that takes no more when the test says so. */
class TestSink implements StreamSink {
  readonly written: string[] = [];
  isFull = false;
  ended = false;
  destroyed = false;
  readonly #waiting = new Map<string, (() => void)[]>();

  write(text: string): boolean {
    this.written.push(text);
    return !this.isFull;
  }

  end(): void {
    this.ended = true;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }

  once(event: 'drain' | 'close', run: () => void): void {
    this.#waiting.set(event, [...(this.#waiting.get(event) ?? []), run]);
  }

  emit(event: 'drain' | 'close'): void {
    const waiting = this.#waiting.get(event) ?? [];
    this.#waiting.delete(event);
    for (const run of waiting) run();
  }

  /** Names of the sections in each Event that has come. */
  get events(): string[][] {
    return this.written
      .filter((text) => text.startsWith('data: '))
      .map((text) => Object.keys((JSON.parse(text.slice(6)) as { sections: object }).sections));
  }
}

class World {
  readonly clock = new FakeClock();
  readonly sections = new Map([
    ['leaders', '1'],
    ['drains', '1'],
  ]);
  readonly errors: string[] = [];
  reads = 0;
  fails = false;
  /** How long a read takes. */
  takesMs = 0;
  readonly stream: EventStream;

  constructor() {
    this.stream = new EventStream({
      clock: this.clock,
      log: { ...silentLogger, error: (_fields: object, message: string) => void this.errors.push(message) },
      read: async () => {
        this.reads++;
        if (this.takesMs > 0) await this.clock.sleep(this.takesMs, new AbortController().signal);
        if (this.fails) throw new Error('oops');
        return { sections: new Map(this.sections), machines: new Map() } satisfies EncodedSnapshot;
      },
    });
  }

  async join(): Promise<TestSink> {
    const sink = new TestSink();
    this.stream.add(sink);
    await this.clock.advanceAsync(0);
    return sink;
  }
}

describe('the stream of the status page', () => {
  test('sends everything at once, then what changes, at most once a second', async () => {
    const world = new World();
    const sink = await world.join();
    expect(sink.written[0]).toBe('retry: 2000\n\n');
    expect(sink.events).toEqual([['leaders', 'drains']]);

    world.sections.set('drains', '2');
    await world.clock.advanceAsync(SECOND - 1);
    world.sections.set('drains', '3');
    expect(sink.events).toHaveLength(1);
    await world.clock.advanceAsync(1);

    expect(sink.events).toEqual([['leaders', 'drains'], ['drains']]);
    expect(sink.written.at(-1)).toMatch(/^data: .*"drains":3.*\n\n$/);
  });

  test('reads nothing while nobody looks', async () => {
    const world = new World();
    await world.clock.advanceAsync(60 * SECOND);
    expect(world.reads).toBe(0);

    const sink = await world.join();
    sink.emit('close');
    const { reads } = world;
    await world.clock.advanceAsync(60 * SECOND);

    expect(reads).toBe(1);
    expect(world.reads).toBe(reads);
  });

  test('shows that it lives while nothing changes', async () => {
    const world = new World();
    const sink = await world.join();

    await world.clock.advanceAsync(25 * SECOND);

    expect(sink.written.filter((text) => text.startsWith('event: beat\n'))).toEqual([
      'event: beat\ndata: {"at":"2026-01-01T00:00:10Z"}\n\n',
      'event: beat\ndata: {"at":"2026-01-01T00:00:20Z"}\n\n',
    ]);
  });

  test('sends nothing to a reader that takes nothing, and then all at once what it has missed', async () => {
    const world = new World();
    const [slow, quick] = [await world.join(), await world.join()];
    slow.isFull = true;
    for (const value of ['2', '3', '4']) {
      world.sections.set('drains', value);
      if (value === '3') world.sections.set('leaders', '2');
      await world.clock.advanceAsync(SECOND);
    }
    expect(slow.events).toEqual([['leaders', 'drains'], ['drains']]);
    expect(quick.events).toHaveLength(4);

    slow.isFull = false;
    slow.emit('drain');
    await world.clock.advanceAsync(SECOND);

    expect(slow.events.at(-1)).toEqual(['leaders', 'drains']);
    expect(slow.written.at(-1)).toContain('"drains":4');
    expect(quick.events).toHaveLength(4);
  });

  test('gives up a reader that takes nothing for a minute', async () => {
    const world = new World();
    const sink = await world.join();
    sink.isFull = true;
    world.sections.set('drains', '2');

    await world.clock.advanceAsync(SECOND);
    await world.clock.advanceAsync(60 * SECOND);
    expect(sink.destroyed).toBe(false);
    await world.clock.advanceAsync(SECOND);

    expect(sink.destroyed).toBe(true);
  });

  test('serves so many at once, and one more when one has left', async () => {
    const world = new World();
    const sinks = [];
    while (!world.stream.isFull) sinks.push(await world.join());
    expect(sinks).toHaveLength(MAX_READERS);

    sinks[0]?.emit('close');

    expect(world.stream.isFull).toBe(false);
  });

  test('takes no more than a twentieth of the time of its process', async () => {
    const world = new World();
    world.takesMs = 200;
    await world.join();
    const before = world.reads;

    await world.clock.advanceAsync(20 * SECOND);

    expect(world.reads - before).toBeLessThanOrEqual(5);
  });

  test('goes on after a failure, of which it tells once', async () => {
    const world = new World();
    world.fails = true;
    const sink = await world.join();
    await world.clock.advanceAsync(3 * SECOND);
    expect(sink.events).toEqual([]);

    world.fails = false;
    await world.clock.advanceAsync(SECOND);

    expect(sink.events).toHaveLength(1);
    expect(world.errors).toEqual(['could not read what the status page shows']);
  });

  test('ends all responses when it stops, and reads nothing any more', async () => {
    const world = new World();
    const sinks = [await world.join(), await world.join()];
    const { reads } = world;

    world.stream.stop();
    await world.clock.advanceAsync(60 * SECOND);

    expect(sinks.map(({ ended }) => ended)).toEqual([true, true]);
    expect(world.reads).toBe(reads);
    expect(world.stream.isFull).toBe(true);
  });
});
