import { describe, expect, test } from '@jest/globals';

import { eventually } from './eventually.ts';

describe('eventually', () => {
  test('resolves with what the look returned at last', async () => {
    const answers = [false, false, 'here'];

    const found = await eventually(() => answers.shift() ?? 'too late', { intervalMs: 1 });

    expect(found).toBe('here');
  });

  test('takes undefined, null and zero for an answer', async () => {
    expect(await eventually(() => undefined)).toBeUndefined();
    expect(await eventually(() => null)).toBeNull();
    expect(await eventually(() => 0)).toBe(0);
  });

  test('throws with the last failure and what was waited for', async () => {
    let looks = 0;
    const look = (): never => {
      looks += 1;
      throw new Error(`look ${looks}`);
    };

    const waiting = eventually(look, { timeoutMs: 30, intervalMs: 1, describe: () => `the node (${looks} looks)` });

    await expect(waiting).rejects.toThrow(/^waited 30 ms for the node \(\d+ looks\); the last failure: look \d+$/);
    expect(looks).toBeGreaterThan(1);
  });

  test('looks less often the longer it takes, unless told how often', async () => {
    const looks = { byDefault: 0, asTold: 0 };

    await Promise.allSettled([
      eventually(() => ((looks.byDefault += 1), false), { timeoutMs: 400 }),
      eventually(() => ((looks.asTold += 1), false), { timeoutMs: 400, intervalMs: 5 }),
    ]);

    expect(looks.byDefault).toBeLessThanOrEqual(10); // 16 every 25 ms
    expect(looks.asTold).toBeGreaterThan(looks.byDefault);
  });

  test('cuts off a look that hangs', async () => {
    const waiting = eventually(() => new Promise<never>(() => undefined), { timeoutMs: 20 });

    await expect(waiting).rejects.toThrow('the first look did not end');
  });
});
