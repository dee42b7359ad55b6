import { expect, test } from '@jest/globals';

import { eventually } from '../../../test/expect/eventually.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { Reader } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { TargetRefusedError } from '../target-refused-error.ts';
import { CommonClaim } from './common-claim.ts';

const { signal } = new AbortController();

/** A claim of a cluster with UID `u1`, and what was done for it; what is told to fail does. */
function start() {
  const clock = new FakeClock();
  const done: string[] = [];
  const state = {
    uid: 'u1',
    failing: '',
    isThere: true,
    isAway: false,
    isRefused: false,
    isJoinHeld: false,
    goOn: Promise.withResolvers<void>(),
    during: (_what: string): void => undefined,
  };
  const note = async (what: string): Promise<void> => {
    done.push(what);
    state.during(what);
    if (state.failing !== '' && what.startsWith(state.failing)) throw new Error(`${what} failed`);
  };
  const get = async (): Promise<unknown> => {
    if (state.isAway) throw new ApiError(0, 'Unreachable', 'away');
    return { metadata: { name: 'kube-system', uid: state.uid } };
  };
  const claim = new CommonClaim({
    reader: { get: get as Reader['get'] },
    claims: {
      async claimForAll(uid, _signal, isOurs) {
        await note(`claim ${uid}${isOurs === true ? ' again' : ''}`);
        if (state.isRefused) throw new TargetRefusedError('TargetClusterChanged', 'another target cluster');
      },
      requireNone: (namespace) => note(`none ${namespace}`),
      requireNodes: (_uid, namespace) => note(`nodes ${namespace}`),
      async join(uid, namespaces) {
        await note(`join ${uid} ${namespaces.join()}`);
        if (state.isJoinHeld) await state.goOn.promise;
      },
      async isOfAll(uid, members) {
        await note(`look ${uid} ${members.join()}`);
        return state.isThere;
      },
    },
    untilPresent: () => note('present'),
    requireSettled: () => note('settled'),
    clock,
  });
  return { claim, done, state, clock };
}

test('many cells that begin at once claim it once, when it is known who has Machines, and each that it has none of its own', async () => {
  const { claim, done } = start();

  await Promise.all(['a', 'b'].map((namespace) => claim.takeFor(namespace, signal)));
  await claim.takeFor('c', signal);

  const first = ['present', 'none a', 'none b', 'settled', 'claim u1', 'nodes a', 'nodes b', 'join u1 a,b'];
  expect(done).toEqual([...first, 'none c', 'nodes c', 'join u1 c']);
});

test.each(['present', 'none', 'settled', 'claim', 'nodes', 'join'])(
  'a cell whose claim fails at step %s has none, and the next attempt makes it',
  async (step) => {
    const { claim, done, state, clock } = start();
    state.failing = step;
    await expect(Promise.all([claim.takeFor('a', signal), claim.takeFor('b', signal)])).rejects.toThrow(step);
    state.failing = '';
    clock.advance(5_000);
    await claim.takeFor('a', signal);

    expect(done.at(-1)).toMatch(/^join u1 a/);
  },
);

test('cells that begin shortly after a failure share it, so that hundreds do not ask', async () => {
  const { claim, done, state, clock } = start();
  state.failing = 'claim';
  await expect(claim.takeFor('a', signal)).rejects.toThrow('claim u1 failed');
  clock.advance(1_000);
  await expect(claim.takeFor('b', signal)).rejects.toThrow('claim u1 failed');

  expect(done).toEqual(['present', 'none a', 'settled', 'claim u1', 'none b']);
});

test('a process that has had the cluster claims it again without waiting for others; one of another cluster waits', async () => {
  const { claim, done, state, clock } = start();
  await claim.takeFor('a', signal);
  done.length = 0;
  claim.mayBeLost();
  await claim.takeFor('a', signal);
  expect(done).toEqual(['present', 'none a', 'claim u1 again', 'join u1 a']);

  done.length = 0;
  clock.advance(61_000);
  await claim.lookAgain(signal);
  expect(done).toEqual(['look u1 a']);

  done.length = 0;
  state.uid = 'u2';
  claim.mayBeLost();
  await claim.takeFor('a', signal);
  expect(done).toEqual(['present', 'none a', 'settled', 'claim u2', 'nodes a', 'join u2 a']);
});

test('a cell that begins later looks again, because a Lease can be deleted by hand', async () => {
  const { claim, done, state, clock } = start();
  await claim.takeFor('a', signal);
  clock.advance(30_000);
  await claim.takeFor('b', signal);
  done.length = 0;

  clock.advance(40_000);
  await claim.takeFor('c', signal);

  expect(done).toEqual(['present', 'none c', 'look u1 a,b', 'nodes c', 'join u1 c']);

  state.isThere = false;
  done.length = 0;
  claim.ended('a');
  // Sooner than a cell that begins.
  clock.advance(30_000);
  await claim.lookAgain(signal);
  expect(done).toEqual(['look u1 b,c', 'claim u1 again', 'join u1 b,c']);
});

test('a cluster that this process has had is its own also while it cannot be asked, but not after a restore of the control cluster', async () => {
  const { claim, done, state, clock } = start();
  state.isAway = true;
  await expect(claim.takeFor('a', signal)).rejects.toThrow('away');
  state.isAway = false;
  clock.advance(5_000);
  await claim.takeFor('a', signal);
  state.isAway = true;
  clock.advance(61_000);
  done.length = 0;

  await claim.takeFor('b', signal);
  expect(done).toEqual(['present', 'none b', 'look u1 a', 'nodes b', 'join u1 b']);
  claim.mayBeLost();
  await expect(claim.takeFor('b', signal)).rejects.toThrow('away');
});

test('a cluster without a UID is none', async () => {
  const { claim, state } = start();
  state.uid = '';

  await expect(claim.takeFor('a', signal)).rejects.toThrow('has no UID');
});

test('who looks again hears of a refusal', async () => {
  const { claim, state, clock } = start();
  await claim.takeFor('a', signal);
  state.isThere = false;
  state.failing = 'claim';
  clock.advance(61_000);

  await expect(claim.lookAgain(signal)).rejects.toThrow('claim u1 again failed');
});

test('a process whose cluster another one has claimed asks like any other one, also when that claim is gone', async () => {
  const { claim, done, state, clock } = start();
  await claim.takeFor('a', signal);
  state.isThere = false;
  state.isRefused = true;
  clock.advance(61_000);
  await expect(claim.lookAgain(signal)).rejects.toThrow('another target cluster');

  state.isRefused = false;
  clock.advance(5_000);
  done.length = 0;
  await claim.takeFor('a', signal);

  expect(done).toEqual(['present', 'none a', 'settled', 'claim u1', 'nodes a', 'join u1 a']);
});

test('a process that has not had the cluster does not look for it', async () => {
  const { claim, done } = start();

  await claim.lookAgain(signal);

  expect(done).toEqual([]);
});

test.each(['while it is being written', 'after that has failed'])(
  'a cell of which it is written down that it has the cluster, and that ends %s, is asked again where its Nodes are, and not written down until then',
  async (when) => {
    const { claim, done, state, clock } = start();
    await claim.takeFor('other', signal);
    const cell = new AbortController();
    if (when === 'after that has failed') state.failing = 'join';
    else state.isJoinHeld = true;
    const failed = claim.takeFor('a', cell.signal).catch((err: unknown) => err);
    await eventually(() => expect(done).toContain('join u1 a'));
    if (when === 'after that has failed') await failed;
    cell.abort(new Error('the cell ends'));
    expect(await failed).toBeInstanceOf(Error);
    claim.ended('a');
    state.failing = '';
    state.isJoinHeld = false;
    state.goOn.resolve();
    clock.advance(61_000);
    done.length = 0;

    await claim.lookAgain(signal);
    await claim.takeFor('b', signal);
    expect(done).toEqual(['look u1 other', 'present', 'none b', 'nodes b', 'join u1 b']);
    await claim.takeFor('a', signal);
    expect(done.slice(-3)).toEqual(['none a', 'nodes a', 'join u1 a']);
  },
);

test('a cell that ends while it is asked where its Nodes are is not written down', async () => {
  const { claim, done, state } = start();
  const cell = new AbortController();
  state.during = (what) => {
    if (what === 'nodes a') cell.abort(new Error('the cell ends'));
  };

  await expect(claim.takeFor('a', cell.signal)).rejects.toThrow('the cell ends');

  expect(done.at(-1)).toBe('nodes a');
});

test('who ends waits no longer, and the others go on', async () => {
  const claimed = Promise.withResolvers<void>();
  const ended = new AbortController();
  const waiting = new CommonClaim({
    reader: { get: (async () => ({ metadata: { uid: 'u1' } })) as unknown as Reader['get'] },
    claims: {
      claimForAll: () => claimed.promise,
      requireNone: () => Promise.resolve(),
      requireNodes: () => Promise.resolve(),
      join: () => Promise.resolve(),
      isOfAll: () => Promise.resolve(true),
    },
    untilPresent: () => Promise.resolve(),
    requireSettled: () => Promise.resolve(),
    clock: new FakeClock(),
  });
  const first = waiting.takeFor('a', ended.signal);
  const second = waiting.takeFor('b', signal);
  ended.abort(new Error('the cell ends'));

  await expect(first).rejects.toThrow('the cell ends');
  claimed.resolve();
  await second;
});
