import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, secret } from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { DriverError } from '../../../driver/error.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { next, type StepResult } from '../../../work/reconcile/result.ts';
import type { MachineStep } from '../context.ts';
import { Retries, type CallKind } from './retries.ts';
import { DriverCalls, StaleCallError } from './driver-call.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const KINDS: readonly CallKind[] = ['create', 'initialize', 'status', 'delete'];

const FAILURES: readonly { readonly name: string; readonly error: Error }[] = [
  { name: 'an error of the provider', error: new DriverError('Internal', 'no') },
  { name: 'a closed gate', error: new GateClosedError('outage', 'target', 'cluster target could not be reached') },
  { name: 'a call that we ended ourselves', error: new DriverError('Canceled', 'given up', { unanswered: true }) },
  { name: 'a refusal of the API server', error: new ApiError(403, 'Forbidden', 'no') },
];

/** A pass of which the last step is a call of this kind that ends with `ends`; `seen` counts what became of it. */
function start(kind: CallKind, ends: () => Promise<never>) {
  const world = new FakeWorld();
  world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
  world.secrets.put(secret());
  world.machines.put(machine((m) => Object.assign(m.metadata, { finalizers: [FINALIZER] })));
  const seen = { sent: 0, shown: 0, unprepared: 0, ended: 0 };
  const resourceExhaustedRetryMs = world.settings.resourceExhaustedRetryMs;
  const retries = new Retries({ clock: world.clock, random: () => 1, resourceExhaustedRetryMs });
  const calls = new DriverCalls({ activities: world.activities, retries });
  const call: MachineStep = {
    name: 'call',
    run(ctx) {
      if (ctx.resolved === undefined) throw new Error('the class was not resolved');
      const progress = calls.advance(ctx, {
        kind,
        resolved: ctx.resolved,
        waitingFor: { answer: 'the answer', attempt: 'the next attempt' },
        send: () => {
          seen.sent += 1;
          return ends();
        },
        show: () => void (seen.shown += 1),
        unprepared: () => void (seen.unprepared += 1),
        ended: () => void (seen.ended += 1),
      });
      return progress.kind === 'waiting' ? progress.result : next;
    },
  };
  const pass = async (...more: readonly MachineStep[]): Promise<StepResult | undefined> => {
    const { result } = await world.pass([...world.only('resolve'), ...more, call]);
    await world.settle();
    return result;
  };
  return { world, seen, retries, calls, pass };
}

/** Annotates the only object of a store, as kubectl does: the generation stays as it is. */
function requestOn(store: FakeWorld['machines'] | FakeWorld['classes'], value: string): void {
  const [one] = store.list();
  if (one === undefined) throw new Error('there is nothing to annotate');
  const { annotations, resourceVersion } = one.metadata;
  const metadata = {
    ...one.metadata,
    resourceVersion: `${resourceVersion}0`,
    annotations: { ...annotations, 'machine.sapcloud.io/retry': value },
  };
  store.put({ ...one, metadata } as never);
}

describe.each(KINDS)('a call of kind %s', (kind) => {
  test('is counted for the account of its class', async () => {
    const { world, pass } = start(kind, () => Promise.reject(new DriverError('Internal', 'no')));
    const accounts: (string | undefined)[] = [];
    const { activities } = world;
    const startOrGet = activities.startOrGet.bind(activities);
    activities.startOrGet = (owner, ...work) => {
      accounts.push(owner.account);
      return startOrGet(owner, ...work);
    };

    await pass();

    expect(accounts).toEqual(['sim/default/secret-1']);
  });

  test.each(FAILURES)('is repeated after $name, but not by events', async ({ error }) => {
    const { world, seen, pass } = start(kind, () => Promise.reject(error));

    for (let i = 0; i < 5; i++) await pass();
    const atFirst = seen.sent;
    world.clock.advance(600_000);
    await pass();

    expect([atFirst, seen.sent]).toEqual([1, 2]);
  });

  test('that fails is repeated at once when its class was changed while it ran, and waits for its next failure', async () => {
    const answer = Promise.withResolvers<never>();
    let answers = 0;
    const { world, seen, pass } = start(kind, () =>
      ++answers === 1 ? answer.promise : Promise.reject(new DriverError('Internal', 'no')),
    );
    await pass();
    world.classes.put(
      machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER], resourceVersion: '2', generation: 2 })),
    );
    await pass();
    answer.reject(new DriverError('Internal', 'no such flavor'));
    await world.settle();

    expect(await pass()).toMatchObject({ kind: 'requeue', afterMs: 0 });
    await pass();
    await pass();
    await pass();

    expect(seen.sent).toBe(2);
  });

  test('is told in the words of the provider at the first failure, the third and each tenth, with the next attempt', async () => {
    const { world, pass } = start(kind, () => Promise.reject(new DriverError('Internal', 'out of order')));

    for (let i = 0; i < 12; i++) {
      await pass();
      await pass();
      world.clock.advance(3_600_000);
    }

    const told = world.warnings;
    expect(told.map(({ fields }) => fields['attempt'])).toEqual([1, 3, 10]);
    expect(told[0]).toMatchObject({
      message: 'driver call failed, retrying',
      fields: { call: kind, provider: 'sim', code: 'Internal', err: 'out of order', retryInMs: expect.any(Number) },
    });
    expect(told.map(({ fields }) => Number(fields['retryInMs']))).not.toContain(0);
  });

  test.each([
    { what: 'on the Machine', request: (world: FakeWorld, value: string) => requestOn(world.machines, value) },
    { what: 'on its MachineClass', request: (world: FakeWorld, value: string) => requestOn(world.classes, value) },
  ])('is made at once with each new request of a retry $what, and not again with the same', async ({ request }) => {
    const { world, seen, pass } = start(kind, () => Promise.reject(new DriverError('ResourceExhausted', 'no room')));
    await pass();
    await pass();
    await pass();
    expect(seen.sent).toBe(1);

    request(world, 'a');
    await pass();
    await pass();
    await pass();
    expect(seen.sent).toBe(2);

    request(world, 'b');
    await pass();
    await pass();

    expect(seen.sent).toBe(3);
  });

  test('comes back for its next attempt by itself', async () => {
    const { pass } = start(kind, () => Promise.reject(new DriverError('Internal', 'no')));
    await pass();

    expect(await pass()).toMatchObject({ kind: 'requeue', waitingFor: 'the next attempt' });
    expect(await pass()).toMatchObject({ kind: 'requeue', waitingFor: 'the next attempt' });
  });

  test('that came too late for its machine waits for the machine as it is now, and blames nobody', async () => {
    const { seen, pass } = start(kind, () => Promise.reject(new StaleCallError('gone')));
    await pass();

    expect(await pass()).toMatchObject({
      kind: 'requeue',
      afterMs: 0,
      waitingFor: 'the latest version of the Machine',
    });
    expect(seen).toEqual({ sent: 1, shown: 0, unprepared: 0, ended: 1 });
  });
});

test.each([
  { name: 'an error of the provider', error: new DriverError('Internal', 'no'), shown: 1, unprepared: 0 },
  { name: 'a closed gate', error: new GateClosedError('outage', 'target', 'x'), shown: 0, unprepared: 0 },
  { name: 'a refusal of the API server', error: new ApiError(403, 'Forbidden', 'no'), shown: 0, unprepared: 1 },
])(
  'a call that ends with $name is shown $shown times, and $unprepared times as one that could not be prepared',
  async (row) => {
    const { seen, pass } = start('create', () => Promise.reject(row.error));
    await pass();
    await pass();

    expect(seen).toEqual({ sent: 1, shown: row.shown, unprepared: row.unprepared, ended: 1 });
  },
);

describe('a call whose Machine is not shown for a while', () => {
  /** It is sent, its Machine leaves the cache and is back, and it ends so. */
  const endsAfterThat = async (kind: CallKind, error: Error) => {
    const answer = Promise.withResolvers<never>();
    let calls = 0;
    const scene = start(kind, () => ((calls += 1) === 1 ? answer.promise : Promise.reject(error)));
    await scene.pass();
    for (const { metadata } of scene.world.machines.list()) {
      scene.calls.forget(metadata.uid);
      scene.world.activities.forgetAll(`default/${metadata.name}`, undefined);
    }
    await scene.pass();
    answer.reject(error);
    await scene.world.settle();
    return scene;
  };

  test.each(KINDS.flatMap((kind) => FAILURES.map((failure) => ({ kind, ...failure }))))(
    'is not repeated at once after $name ($kind)',
    async ({ kind, error }) => {
      const { seen, pass } = await endsAfterThat(kind, error);

      for (let passes = 0; passes < 3; passes += 1) await pass();

      expect(seen.sent).toBe(1);
    },
  );

  test('closes its class if that is exhausted', async () => {
    const { retries, pass } = await endsAfterThat('create', new DriverError('ResourceExhausted', 'no room'));

    await pass();

    expect(retries.heldClasses()).toHaveLength(1);
  });
});

test('a creation that was given up is looked at after its own wait, although its class has run out of something meanwhile', async () => {
  const closed = new GateClosedError('outage', 'target', 'x');
  const { pass, retries } = start('create', () => Promise.reject(closed));
  const another = machine((m) => Object.assign(m.metadata, { name: 'm-2', uid: 'u-2' }));
  const exhaust: MachineStep = {
    name: 'exhaust',
    run({ resolved }) {
      if (resolved === undefined) throw new Error('the class was not resolved');
      retries.sent(another, 'create', resolved);
      retries.failed(another, 'create', new DriverError('ResourceExhausted', 'no room'));
      return next;
    },
  };
  await pass();

  expect(await pass(exhaust)).toMatchObject({ kind: 'requeue', afterMs: 5_000 });
  expect(await pass()).toMatchObject({ kind: 'requeue', afterMs: 15_000 });
});
