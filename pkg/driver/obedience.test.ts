import { describe, expect, test } from '@jest/globals';

import { DriverError } from './error.ts';
import { Obedience } from './obedience.ts';

const refusal = new DriverError('FailedPrecondition', 'fencing token 3 is older than 5', { highestToken: 5n });

/** `answers`: what each attempt to raise the token comes to. */
function start(...answers: (string | undefined)[]) {
  const raises: bigint[] = [];
  const told: (string | undefined)[] = [];
  const obedience = new Obedience({
    raiseAbove(token) {
      raises.push(token);
      return Promise.resolve(answers.shift());
    },
    told: (why) => told.push(why),
  });
  return { obedience, raises, told };
}

describe('a driver that refuses our fencing token', () => {
  test('and has not obeyed this leadership is asked again under a token above the one that it has seen', async () => {
    const { obedience, raises, told } = start(undefined);

    await expect(obedience.restore(refusal, 5n)).resolves.toBeUndefined();

    expect(raises).toEqual([5n]);
    expect(told).toEqual([]);
  });

  test('is told, with what it said and why the token could not be raised', async () => {
    const { obedience, told } = start('the Lease is not ours any more');

    await expect(obedience.restore(refusal, 5n)).rejects.toMatchObject({
      code: 'FailedPrecondition',
      detail:
        'fencing token 3 is older than 5; leaseTransitions could not be raised above it: the Lease is not ours any more',
      cause: refusal,
    });

    expect(told).toEqual([
      'it has seen token 5; leaseTransitions could not be raised above it: the Lease is not ours any more',
    ]);
  });

  test('and had obeyed is not outbid: two copies of a cluster would take turns', async () => {
    const { obedience, raises, told } = start();
    obedience.obeyed();

    await expect(obedience.restore(refusal, 5n)).rejects.toMatchObject({
      detail: expect.stringMatching(
        /^fencing token 3 is older than 5; .*end the other manager .*, then restart this one$/,
      ),
    });

    expect(raises).toEqual([]);
    expect(told).toEqual([undefined, expect.stringContaining('somebody else acts for the same cluster')]);
  });

  test('is told no longer when it obeys', async () => {
    const { obedience, told } = start('busy', undefined);
    await obedience.restore(refusal, 5n).catch(() => undefined);

    await obedience.restore(refusal, 5n);
    obedience.obeyed();

    expect(told).toEqual([expect.stringContaining('busy'), undefined]);
  });
});
