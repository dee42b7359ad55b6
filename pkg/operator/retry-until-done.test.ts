import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { ApiError } from '../kube/client/errors.ts';
import { HttpReader } from '../kube/client/http-reader.ts';
import { nodes } from '../kube/client/resource.ts';
import type { Transport } from '../kube/client/transport.ts';
import { silentLogger } from '../base/log/logger.ts';
import { HeldWork } from '../health/held-work.ts';
import { retryUnlessRefused, retryUntilDone } from './retry-until-done.ts';

const unreachable = (): ApiError => new ApiError(0, 'Unreachable', 'connection refused');
const forbidden = (): ApiError => new ApiError(403, 'Forbidden', 'nodes is forbidden');
const times = (n: number, error: () => ApiError): ApiError[] => Array.from({ length: n }, error);

function start(
  errors: unknown[],
  how: typeof retryUnlessRefused = retryUntilDone,
  read = (): Promise<string> => Promise.resolve('read'),
  answeredSince?: (sinceMs: number, signal: AbortSignal) => Promise<void>,
): {
  clock: FakeClock;
  held: HeldWork;
  warnings: string[];
  stop: AbortController;
  tries: () => number;
  end: Promise<string>;
} {
  const clock = new FakeClock();
  const held = new HeldWork({ clock });
  const warnings: string[] = [];
  const log = { ...silentLogger, warn: (_fields: object, message: string) => void warnings.push(message) };
  const stop = new AbortController();
  let tries = 0;
  const run = (): Promise<string> => {
    tries += 1;
    const err = errors.shift();
    return err === undefined ? read() : Promise.reject(err);
  };
  const hold = held.hold({ work: 'machines', waitsFor: 'catch-up', of: 'target' });
  const also = answeredSince === undefined ? {} : { answeredSince };
  const end = how({ clock, log, hold, random: () => 0.5, ...also }, 'reading', run, stop.signal);
  end.catch(() => undefined); // looked at later
  return { clock, held, warnings, stop, tries: () => tries, end };
}

describe('what is done retryUntilDone', () => {
  test('survives a server that cannot be asked for a while', async () => {
    const { clock, tries, end } = start([unreachable(), new ApiError(500, 'InternalError', 'etcd has no leader')]);
    await clock.advanceAsync(10_000);

    await expect(end).resolves.toBe('read');
    expect(tries()).toBe(3);
  });

  test.each([
    forbidden(),
    new ApiError(401, 'Unauthorized', 'who are you'),
    new ApiError(404, 'NotServed', 'not served'),
  ])('is never given up because the server refuses it: $message', async (err) => {
    const { clock, tries, end } = start(Array.from({ length: 100 }, () => err));
    await clock.advanceAsync(3_600_000);

    await expect(end).resolves.toBe('read');
    expect(tries()).toBe(101);
  });

  test.each([undefined, {}, { metadata: {}, items: null }])(
    'is never given up because of an answer that says nothing: %j',
    async (answer) => {
      const answers = [answer, answer, { metadata: { resourceVersion: '7' }, items: [] }];
      const reader = new HttpReader({ request: () => Promise.resolve(answers.shift()) } as unknown as Transport);
      const { clock, end } = start([], retryUntilDone, async () => (await reader.list(nodes)).metadata.resourceVersion);
      await clock.advanceAsync(60_000);

      await expect(end).resolves.toBe('7');
    },
  );

  test('does not wait for a pause to end once the server has answered somebody else', async () => {
    const answered = Promise.withResolvers<void>();
    const asked: number[] = [];
    const { clock, tries, end } = start(times(9, unreachable), retryUntilDone, undefined, (sinceMs, signal) => {
      asked.push(sinceMs);
      const ended = new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      return Promise.race([answered.promise, ended]);
    });
    await clock.advanceAsync(15_000); // 0.8 + 1.6 + 3.2 + 5 s, and some of the next 5
    const before = tries();
    answered.resolve();
    await clock.advanceAsync(1);
    const after = tries();
    // It is not asked sooner than each half second, though.
    await clock.advanceAsync(998);

    expect({ before, after, later: tries() }).toEqual({ before: 5, after: 6, later: 7 });
    expect(asked).toEqual([0, 800, 2_400, 5_600, 10_600, 15_000]);
    await clock.advanceAsync(2_000);
    await expect(end).resolves.toBe('read');
  });

  test('waits for the first pause again when the server is back, and refuses for a moment', async () => {
    const { clock, tries, end } = start([...times(6, unreachable), forbidden()]);
    await clock.advanceAsync(800 + 1_600 + 3_200 + 3 * 5_000);
    const before = tries();
    await clock.advanceAsync(800);

    expect({ before, after: tries() }).toEqual({ before: 7, after: 8 });
    await expect(end).resolves.toBe('read');
  });

  test('is told from the third failure on, and shown as held with the last one until it succeeds', async () => {
    const { clock, held, warnings, end } = start(times(3, forbidden));
    await clock.advanceAsync(1_000);
    const before = { warnings: warnings.length, held: held.list() };
    await clock.advanceAsync(60_000);

    await expect(end).resolves.toBe('read');
    expect(before).toMatchObject({ warnings: 0, held: [{ work: 'machines', why: 'nodes is forbidden' }] });
    expect(warnings).toEqual(['reading failed, retrying']);
    expect(held.list()).toEqual([]);
  });

  test('ends at once with a bug, and stays shown as held', async () => {
    const err = new TypeError('a bug');
    const { tries, end, held } = start([err]);

    await expect(end).rejects.toBe(err);
    expect(tries()).toBe(1);
    expect(held.list()).toMatchObject([{ why: 'a bug' }]);
  });

  test('ends with its signal', async () => {
    const { clock, stop, end } = start([unreachable(), unreachable(), unreachable()]);
    await clock.advanceAsync(1_000);
    stop.abort(new Error('stopping'));

    await expect(end).rejects.toThrow('stopping');
  });
});

describe('what is done retryUnlessRefused', () => {
  test('survives a server that refuses while it starts', async () => {
    const { clock, end } = start([unreachable(), forbidden(), forbidden()], retryUnlessRefused);
    await clock.advanceAsync(20_000);

    await expect(end).resolves.toBe('read');
  });

  test('waits for a server that cannot be reached for as long as it takes', async () => {
    const { clock, end } = start([...times(100, unreachable), forbidden()], retryUnlessRefused);
    await clock.advanceAsync(3_600_000);

    await expect(end).resolves.toBe('read');
  });

  test('ends with a refusal that lasts longer than a start', async () => {
    const { clock, end, tries } = start(times(100, forbidden), retryUnlessRefused);
    await clock.advanceAsync(9_000);
    const triesBefore = tries();
    await clock.advanceAsync(60_000);

    await expect(end).rejects.toThrow('nodes is forbidden');
    expect(triesBefore).toBeGreaterThan(2);
    expect(tries()).toBeLessThan(10);
  });
});
