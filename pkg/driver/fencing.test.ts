import { describe, expect, test } from '@jest/globals';

import { HOUR } from '../../test/durations.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { FencingGuard, type FencingRecord, type FencingStore } from './fencing.ts';

/** A store in memory; `refuse` makes the next write fail. */
function memoryStore(): FencingStore & { saves: number; refuse: boolean } {
  let kept: readonly FencingRecord[] = [];
  return {
    saves: 0,
    refuse: false,
    load: () => Promise.resolve(kept),
    save(records) {
      if (this.refuse) return Promise.reject(new Error('disk full'));
      this.saves++;
      kept = structuredClone(records);
      return Promise.resolve();
    },
  };
}

describe('FencingGuard', () => {
  test('refuses a token that is older than one it has seen', async () => {
    const guard = await FencingGuard.open({ clock: new FakeClock() });
    await guard.admit('c-1', 'shoot', 5n);

    await expect(guard.admit('c-1', 'shoot', 4n)).rejects.toMatchObject({
      code: 'FailedPrecondition',
      highestToken: 5n,
    });
    await expect(guard.admit('c-1', 'shoot', 5n)).resolves.toBeUndefined();
    await expect(guard.admit('c-1', 'shoot', 6n)).resolves.toBeUndefined();
    await expect(guard.admit('c-1', 'shoot', 5n)).rejects.toMatchObject({ code: 'FailedPrecondition' });
  });

  test('compares only within one namespace of one cluster', async () => {
    const guard = await FencingGuard.open({ clock: new FakeClock() });
    await guard.admit('c-1', 'shoot', 5n);

    await expect(guard.admit('c-1', 'other', 1n)).resolves.toBeUndefined();
    await expect(guard.admit('c-2', 'shoot', 1n)).resolves.toBeUndefined();
  });

  test('remembers over a restart', async () => {
    const clock = new FakeClock();
    const store = memoryStore();
    await (await FencingGuard.open({ clock, store })).admit('c-1', 'shoot', 2n ** 60n);

    const restarted = await FencingGuard.open({ clock, store });

    await expect(restarted.admit('c-1', 'shoot', 2n ** 60n - 1n)).rejects.toThrow(/older/);
  });

  test('forgets a token that nobody has used for an hour, because its Lease may have been deleted', async () => {
    const clock = new FakeClock();
    const guard = await FencingGuard.open({ clock });
    await guard.admit('c-1', 'shoot', 5n);

    clock.advance(HOUR - 1);
    await expect(guard.admit('c-1', 'shoot', 1n)).rejects.toThrow(/older/);
    clock.advance(1);

    await expect(guard.admit('c-1', 'shoot', 1n)).resolves.toBeUndefined();
  });

  test('admits a manager without leader election, and compares those with it as if it had never called', async () => {
    const store = memoryStore();
    const guard = await FencingGuard.open({ clock: new FakeClock(), store });
    await guard.admit('c-1', 'shoot', 5n);

    await expect(guard.admit('c-1', 'shoot', 0n)).resolves.toBeUndefined();

    await expect(guard.admit('c-1', 'shoot', 4n)).rejects.toThrow(/older/);
    await expect(guard.admit('c-1', 'shoot', 5n)).resolves.toBeUndefined();
    expect(store.saves).toBe(1);
  });

  test('does not forget a token that is in use', async () => {
    const clock = new FakeClock();
    const guard = await FencingGuard.open({ clock });
    for (let minutes = 0; minutes < 120; minutes += 10) {
      await guard.admit('c-1', 'shoot', 5n);
      clock.advance(600_000);
    }

    await expect(guard.admit('c-1', 'shoot', 4n)).rejects.toThrow(/older/);
  });

  test('writes when a token is new, not for every call', async () => {
    const store = memoryStore();
    const guard = await FencingGuard.open({ clock: new FakeClock(), store });

    for (let i = 0; i < 50; i++) await guard.admit('c-1', 'shoot', 5n);
    await guard.admit('c-1', 'shoot', 6n);

    expect(store.saves).toBe(2);
  });

  test('does not admit what it could not write down', async () => {
    const store = memoryStore();
    const guard = await FencingGuard.open({ clock: new FakeClock(), store });
    store.refuse = true;

    await expect(guard.admit('c-1', 'shoot', 5n)).rejects.toThrow('disk full');
    await expect(guard.admit('c-1', 'shoot', 5n)).rejects.toThrow('disk full');
    store.refuse = false;

    await expect(guard.admit('c-1', 'shoot', 5n)).resolves.toBeUndefined();
    expect(store.saves).toBe(1);
  });
});
