import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { machineClass } from '../../test/builders.ts';
import { SystemClock } from '../base/clock/system-clock.ts';
import { CallRates } from './call-rates.ts';
import { TurnAbandonedError } from './turn-abandoned.ts';

const never = new AbortController().signal;
const classWith = (secret: string) =>
  machineClass((c) => void (c.credentialsSecretRef = { namespace: 'shoot', name: secret }));

/** One call at once, and then none for a quarter of an hour. */
const SLOW = { provider: 'sim', qps: 0.001, clock: new SystemClock() };
let rates: CallRates;

beforeEach(() => {
  rates = new CallRates(SLOW);
});

afterEach(async () => {
  await rates.end();
});

test('an account that has used up its rate waits, and keeps no other waiting', async () => {
  await rates.acquire(classWith('a'), never);
  const leaving = new AbortController();
  const second = rates.acquire(classWith('a'), leaving.signal);

  await rates.acquire(classWith('b'), never);

  leaving.abort(new Error('leaving'));
  await expect(second).rejects.toThrow(TurnAbandonedError);
});

test('who waits behind another that waits gives up at once', async () => {
  await rates.acquire(classWith('a'), never);
  const before = rates.acquire(classWith('a'), never);
  const leaving = new AbortController();
  const behind = rates.acquire(classWith('a'), leaving.signal);

  leaving.abort(new Error('leaving'));

  await expect(behind).rejects.toThrow(TurnAbandonedError);
  await Promise.all([rates.end(), expect(before).rejects.toThrow(TurnAbandonedError)]);
});

test('classes of one Secret share its rate', async () => {
  const leaving = new AbortController();
  await rates.acquire(classWith('a'), never);
  const other = machineClass((c) => {
    c.metadata.name = 'class-2';
    c.credentialsSecretRef = { namespace: 'shoot', name: 'a' };
  });
  const second = rates.acquire(other, leaving.signal);
  leaving.abort(new Error('leaving'));

  await expect(second).rejects.toThrow(TurnAbandonedError);
});

test('as many calls as in a second may come at once', async () => {
  const waits: number[] = [];
  const quick = new CallRates({ ...SLOW, qps: 3, waited: (ms) => void waits.push(ms) });

  await Promise.all([1, 2, 3].map(() => quick.acquire(classWith('a'), never)));
  await quick.end();

  expect(waits).toHaveLength(3);
});

test('a rate of 0 is no limit', async () => {
  const unlimited = new CallRates({ ...SLOW, qps: 0 });

  for (let i = 0; i < 100; i++) await unlimited.acquire(classWith('a'), never);
});

test('who waits when the process stops is given up, and so is who comes then', async () => {
  await rates.acquire(classWith('a'), never);
  const waiting = rates.acquire(classWith('a'), never);

  await Promise.all([rates.end(), expect(waiting).rejects.toThrow(TurnAbandonedError)]);

  await expect(rates.acquire(classWith('a'), never)).rejects.toThrow(TurnAbandonedError);
});

test('who gives up uses up no turn of those behind, and is counted', async () => {
  const waits: number[] = [];
  const quick = new CallRates({ ...SLOW, qps: 4, waited: (ms) => void waits.push(ms) });
  await Promise.all([1, 2, 3, 4].map(() => quick.acquire(classWith('a'), never)));
  const leaving = new AbortController();
  const given = Promise.allSettled(Array.from({ length: 400 }, () => quick.acquire(classWith('a'), leaving.signal)));
  const behind = quick.acquire(classWith('a'), never);

  leaving.abort(new Error('leaving'));
  await given;
  await behind; // with their turns it would come after 100 s

  expect(waits).toHaveLength(405);
  await quick.end();
});
