import { expect, test } from '@jest/globals';

import { node } from '../../../../../test/builders.ts';
import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import { eventsOf } from '../../../../../test/fakes/notes.ts';
import { toTimestamp } from '../../../../base/clock/clock.ts';
import { ApiError } from '../../../../kube/client/errors.ts';
import { PassNotes } from '../../../../work/reconcile/object-pass/pass-notes.ts';
import type { Target } from '../../../../kube/targets/targets.ts';
import type { MachinePass } from '../machine-pass.ts';
import { nodeRemoval } from './node-removal.ts';

const NOT_FOUND = new ApiError(404, 'NotFound', 'gone');
const REFUSED = new ApiError(403, 'Forbidden', 'a webhook forbids it');
const NO_ANSWER = new Error('socket hang up');

/** A Machine whose Node `n` is deleted, with a timeout of 20 s; `answers` of the API server, one after the other. */
class World {
  readonly clock = new FakeClock();
  readonly requests: unknown[] = [];
  readonly #step = nodeRemoval({ clock: this.clock });
  readonly #deletedAt = toTimestamp(this.clock.now());
  answer: Error | undefined;

  async pass(): Promise<{
    readonly went: string;
    readonly says: string | undefined;
    readonly told: readonly string[];
  }> {
    const target = {
      writer: {
        delete: async (...[intent, , { name }, preconditions]: [string, unknown, { name: string }, unknown]) => {
          await Promise.resolve();
          this.requests.push({ intent, name, preconditions });
          if (this.answer !== undefined) throw this.answer;
        },
      },
    } as unknown as Target;
    const pass = {
      machine: {
        metadata: { name: 'm', uid: 'uid-m', deletionTimestamp: this.#deletedAt },
        spec: { deletion: { nodeDeletionTimeoutSeconds: 20 } },
        status: {},
      },
      node: { kind: 'found', node: node((n) => void Object.assign(n.metadata, { name: 'n', uid: 'uid-n' })) },
      nodeCluster: { kind: 'reached', target, identity: undefined },
      signal: new AbortController().signal,
      notes: new PassNotes(),
      older: [],
    } as unknown as MachinePass;
    const went = await Promise.resolve(this.#step.run(pass)).then(
      ({ kind }) => kind,
      (err: unknown) => String(err),
    );
    return { went, says: pass.deleting?.message, told: eventsOf(pass.notes).map(({ message }) => message) };
  }
}

test('the Node is deleted as what is destroyed, and only the one that was drained', async () => {
  const world = new World();

  expect(await world.pass()).toEqual({ went: 'next', says: undefined, told: [] });
  expect(world.requests).toEqual([{ intent: 'destroy', name: 'n', preconditions: { uid: 'uid-n' } }]);
});

test('a Node that is gone is deleted', async () => {
  const world = new World();
  world.answer = NOT_FOUND;

  expect(await world.pass()).toEqual({ went: 'next', says: undefined, told: [] });
});

test('a refusal is shown, tried again, and given up after the timeout', async () => {
  const world = new World();
  world.answer = REFUSED;

  const first = await world.pass();
  world.clock.advance(19_999);
  const before = await world.pass();
  world.clock.advance(1);
  const after = await world.pass();

  const waiting = { went: String(REFUSED), says: 'Deleting Node n: a webhook forbids it', told: [] };
  expect([first, before]).toEqual([waiting, waiting]);
  expect(after).toEqual({
    went: 'next',
    says: undefined,
    told: ['Node n could not be deleted and is kept: a webhook forbids it'],
  });
});

test('no answer is never taken for the end of the timeout', async () => {
  const world = new World();
  world.answer = NO_ANSWER;

  await world.pass();
  world.clock.advance(60_000);

  expect(await world.pass()).toEqual({ went: String(NO_ANSWER), says: 'Deleting Node n: socket hang up', told: [] });
});

test.each([
  { what: 'a success', answer: undefined },
  { what: 'a Node that is gone', answer: NOT_FOUND },
])('after $what another Node is tried for ten seconds at least', async ({ answer }) => {
  const world = new World();
  world.answer = REFUSED;
  await world.pass();
  world.clock.advance(15_000);
  world.answer = answer;
  await world.pass();
  world.clock.advance(15_000);

  world.answer = REFUSED;
  const first = await world.pass();
  world.clock.advance(10_000);
  const later = await world.pass();

  expect([first.went, later.went]).toEqual([String(REFUSED), 'next']);
});

test('a Node that could not be deleted is tried anew for as long when its Machine comes back to it', async () => {
  const world = new World();
  world.answer = REFUSED;
  await world.pass();
  world.clock.advance(20_000);
  expect((await world.pass()).went).toBe('next');

  expect((await world.pass()).went).toBe(String(REFUSED));
});
