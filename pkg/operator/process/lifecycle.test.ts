import { EventEmitter } from 'node:events';

import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { underLease } from './leadership.ts';
import { CannotStartError, Lifecycle, type Member } from './lifecycle.ts';

class TestHost extends EventEmitter {
  readonly exits: number[] = [];

  exit(code: number): void {
    this.exits.push(code);
  }
}

function start() {
  const clock = new FakeClock();
  const host = new TestHost();
  const story: string[] = [];
  const lifecycle = new Lifecycle({ clock, log: silentLogger, host });
  const member = (name: string, change: Partial<Member> = {}): Member => ({
    name,
    start: async () => void story.push(`${name} started`),
    stop: async (graceMs) => void story.push(`${name} stopped, ${graceMs} ms grace`),
    ...change,
  });
  return { clock, host, story, lifecycle, member };
}

const hangs = (): Promise<never> => new Promise(() => undefined);
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function candidateOf(story: string[]) {
  const mayLead = Promise.withResolvers<void>();
  return {
    mayLead,
    async acquire(signal: AbortSignal) {
      await Promise.race([mayLead.promise, untilAborted(signal)]);
      story.push('acquired');
    },
    async release(mutationsEnded: () => Promise<void>) {
      await mutationsEnded();
      story.push('released');
    },
  };
}
function led(story: string[]) {
  return {
    begin: async () => void story.push('began'),
    end: async () => void story.push('last mutation ended'),
  };
}

describe('a process', () => {
  test('starts its stages in order and stops them in reverse on SIGTERM, with grace and code 0', async () => {
    const { lifecycle, member, story, host } = start();
    lifecycle.add(member('server'));
    lifecycle.add(member('caches'));
    lifecycle.add(member('workers'));
    const running = lifecycle.run();
    await turn();

    host.emit('SIGTERM');

    expect(await running).toBe(0);
    expect(story).toEqual([
      'server started',
      'caches started',
      'workers started',
      'workers stopped, 20000 ms grace',
      'caches stopped, 20000 ms grace',
      'server stopped, 20000 ms grace',
    ]);
    expect(host.eventNames()).toEqual([]);
  });

  test('starts the next stage only when the whole stage before it runs', async () => {
    const { lifecycle, member, story, host } = start();
    const slow = Promise.withResolvers<void>();
    lifecycle.add(member('quick'), member('slow', { start: () => slow.promise }));
    lifecycle.add(member('next'));
    const running = lifecycle.run();
    await turn();

    const before = [...story];
    slow.resolve();
    await turn();

    expect(before).toEqual(['quick started']);
    expect(story).toEqual(['quick started', 'next started']);
    host.emit('SIGTERM');
    await running;
  });

  test('that stands by for its Lease stops at once, and what was never started is not stopped', async () => {
    const { lifecycle, member, story, host } = start();
    lifecycle.add(member('server'));
    lifecycle.add(member('standby', { start: untilAborted }));
    lifecycle.add(member('never'));
    const running = lifecycle.run();
    await turn();

    host.emit('SIGINT');

    expect(await running).toBe(0);
    expect(story).toEqual(['server started', 'standby stopped, 20000 ms grace', 'server stopped, 20000 ms grace']);
  });

  test('exits at once on a second signal', async () => {
    const { lifecycle, member, host, clock } = start();
    lifecycle.add(member('slow', { stop: hangs }));
    const running = lifecycle.run();
    await turn();

    host.emit('SIGTERM');
    await turn();
    const before = [...host.exits];
    host.emit('SIGTERM');

    expect(before).toEqual([]);
    expect(host.exits).toEqual([143]);
    await clock.advanceAsync(30_000);
    await running;
  });

  test.each([
    { what: 'an uncaught exception', cause: (host: TestHost) => host.emit('uncaughtException', new Error('bug')) },
    { what: 'an unhandled rejection', cause: (host: TestHost) => host.emit('unhandledRejection', new Error('bug')) },
    { what: 'a lost Lease', cause: (_host: TestHost, lifecycle: Lifecycle) => lifecycle.fatal('leadership was lost') },
  ])('ends through the same path without grace and with code 1 after $what', async ({ cause }) => {
    const { lifecycle, member, story, host } = start();
    lifecycle.add(member('server'));
    lifecycle.add(member('workers'));
    const running = lifecycle.run();
    await turn();

    cause(host, lifecycle);

    expect(await running).toBe(1);
    expect(story.slice(2)).toEqual(['workers stopped, 0 ms grace', 'server stopped, 0 ms grace']);
  });

  test('that cannot start stops what it has started, with code 1', async () => {
    const { lifecycle, member, story } = start();
    lifecycle.add(member('server'));
    lifecycle.add(
      member('caches', {
        start: async () => {
          throw new Error('forbidden');
        },
      }),
    );

    expect(await lifecycle.run()).toBe(1);
    expect(story).toEqual(['server started', 'caches stopped, 0 ms grace', 'server stopped, 0 ms grace']);
  });

  test('tells in one sentence, without a stack and as its last line, what somebody has to mend before it can start', async () => {
    const lines: unknown[] = [];
    const tell = (fields: object, msg: string) => void lines.push({ ...fields, msg });
    const log = { ...silentLogger, error: tell, warn: tell, info: tell };
    const lifecycle = new Lifecycle({ clock: new FakeClock(), log, host: new TestHost() });
    const refuse = (): Promise<void> => Promise.reject(new CannotStartError('the port is in use'));
    lifecycle.add({ name: 'server', start: refuse, stop: () => Promise.resolve() });

    expect(await lifecycle.run()).toBe(1);
    expect(lines).toEqual([{ err: 'the port is in use', msg: 'could not start' }]);
  });

  test('goes on stopping when a member does not end in time, with code 1', async () => {
    const { lifecycle, member, story, host, clock } = start();
    lifecycle.add(member('server'));
    lifecycle.add(member('stuck', { stop: hangs }));
    const running = lifecycle.run();
    await turn();
    host.emit('SIGTERM');

    await clock.advanceAsync(29_999);
    const before = [...story];
    await clock.advanceAsync(1);

    expect(await running).toBe(1);
    expect(before).not.toContain('server stopped, 20000 ms grace');
    expect(story).toContain('server stopped, 20000 ms grace');
  });

  test('stops a member whose stop throws like one that hangs: logged, code 1, the rest goes on', async () => {
    const { lifecycle, member, story, host } = start();
    lifecycle.add(member('server'));
    lifecycle.add(member('broken', { stop: () => Promise.reject(new Error('bug')) }));
    const running = lifecycle.run();
    await turn();

    host.emit('SIGTERM');

    expect(await running).toBe(1);
    expect(story.at(-1)).toBe('server stopped, 20000 ms grace');
  });

  test('that is told to end before it runs ends', async () => {
    const { lifecycle, member, story } = start();
    lifecycle.add(member('server'));

    lifecycle.fatal('bad flags');

    expect(await lifecycle.run()).toBe(1);
    expect(story).toEqual([]);
  });
});

describe('work under a Lease', () => {
  test('begins when the Lease is held, and ends before it is released', async () => {
    const { lifecycle, story, host } = start();
    const candidate = candidateOf(story);
    lifecycle.add(underLease('machines', candidate, led(story)));
    const running = lifecycle.run();
    await turn();
    const before = [...story];
    candidate.mayLead.resolve();
    await turn();

    host.emit('SIGTERM');
    await running;

    expect(before).toEqual([]);
    expect(story).toEqual(['acquired', 'began', 'last mutation ended', 'released']);
  });

  test('does not release the Lease while work does not end', async () => {
    const { lifecycle, story, host, clock } = start();
    const candidate = candidateOf(story);
    candidate.mayLead.resolve();
    lifecycle.add(underLease('machines', candidate, { ...led(story), end: hangs }));
    const running = lifecycle.run();
    await turn();
    host.emit('SIGTERM');

    await clock.advanceAsync(30_000);

    expect(await running).toBe(1);
    expect(story).toEqual(['acquired', 'began']);
  });

  test('two Leases are waited for side by side', async () => {
    const { lifecycle, story, host } = start();
    const first = candidateOf(story);
    const second = candidateOf(story);
    lifecycle.add(underLease('sets', first, led(story)), underLease('machines', second, led(story)));
    const running = lifecycle.run();
    second.mayLead.resolve();
    await turn();

    expect(story).toEqual(['acquired', 'began']);
    host.emit('SIGTERM');
    await running;
  });

  test('begins at once without leader election', async () => {
    const { lifecycle, story, host } = start();
    lifecycle.add(underLease('machines', undefined, led(story)));
    const running = lifecycle.run();
    await turn();

    host.emit('SIGTERM');
    await running;

    expect(story).toEqual(['began', 'last mutation ended']);
  });
});
