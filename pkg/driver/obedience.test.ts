import { describe, expect, test } from '@jest/globals';

import { DriverError } from './error.ts';
import { Obedience } from './obedience.ts';

const refusal = new DriverError('FailedPrecondition', 'fencing token 3 is older than 5', { highestToken: 5n });

/** `answers`: what each attempt to raise the token comes to. */
function start(...answers: (string | undefined)[]) {
  const raises: bigint[] = [];
  const told: (string | undefined)[] = [];
  const led = { leadership: 'first' as string | undefined };
  const obedience = new Obedience({
    leadership: () => led.leadership,
    raiseAbove(token) {
      raises.push(token);
      return Promise.resolve(answers.shift());
    },
    reported: (why) => told.push(why),
  });
  return { obedience, raises, told, led };
}

describe('a driver that refuses our fencing token', () => {
  test('and has not obeyed this leadership is asked again under a token above the one that it has seen', async () => {
    const { obedience, raises, told } = start(undefined);

    await expect(obedience.restore(refusal, 5n)).resolves.toBeUndefined();

    expect(raises).toEqual([5n]);
    expect(told).toEqual([]);
  });

  test('is told, with what it said and why the token could not be raised', async () => {
    const { obedience, told } = start('the Lease is held by another process');

    await expect(obedience.restore(refusal, 5n)).rejects.toMatchObject({
      code: 'FailedPrecondition',
      detail:
        'fencing token 3 is older than 5; leaseTransitions could not be raised above it: the Lease is held by another process',
      cause: refusal,
    });

    expect(told).toEqual([
      'it has seen token 5; leaseTransitions could not be raised above it: the Lease is held by another process',
    ]);
  });

  test('and had obeyed is not outbid: two copies of a cluster would take turns', async () => {
    const { obedience, raises, told } = start();
    obedience.obeyed();

    await expect(obedience.restore(refusal, 5n)).rejects.toMatchObject({
      detail: expect.stringMatching(
        /^fencing token 3 is older than 5; .*stop the other manager .*, then restart this one$/,
      ),
    });

    expect(raises).toEqual([]);
    expect(told).toEqual([undefined, expect.stringContaining('another manager acts for the same cluster')]);
  });

  test.each([
    { title: 'under an earlier leadership', before: 'first', now: 'second' },
    { title: 'when we did not lead', before: undefined, now: 'second' },
    { title: 'before we stopped leading', before: 'first', now: undefined },
  ])('and had obeyed $title is asked again as if it had not', async ({ before, now }) => {
    const { obedience, raises, led } = start(undefined);
    led.leadership = before;
    obedience.obeyed();
    led.leadership = now;

    await expect(obedience.restore(refusal, 5n)).resolves.toBeUndefined();

    expect(raises).toEqual([5n]);
  });

  test('and had obeyed is not outbid after a call of the present leadership that ended while we did not lead', async () => {
    const { obedience, raises, led } = start();
    obedience.obeyed();
    led.leadership = undefined;
    obedience.obeyed();
    led.leadership = 'first';

    await expect(obedience.restore(refusal, 5n)).rejects.toMatchObject({ highestToken: 5n });

    expect(raises).toEqual([]);
  });

  test('is told no longer when it obeys', async () => {
    const { obedience, told } = start('busy', undefined);
    await obedience.restore(refusal, 5n).catch(() => undefined);

    await obedience.restore(refusal, 5n);
    obedience.obeyed();

    expect(told).toEqual([expect.stringContaining('busy'), undefined]);
  });
});
