import { describe, expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { machines as machineResource } from '../../kube/client/resource.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { scaleUp } from './scale-up.ts';

const SET = machineSet();
const signal = new AbortController().signal;

/** Creates until nothing is missing. */
async function create(deps: SetWorld, count: number, pending: readonly string[] = []): Promise<unknown> {
  const made = (): number => deps.client.writes.length;
  const [outcome] = await Promise.allSettled([
    scaleUp(deps, { set: SET, pending, signal, missing: () => count - made() }),
  ]);
  return outcome.status === 'fulfilled' ? outcome.value : outcome.reason;
}

function unsettled(deps: SetWorld): readonly string[] {
  const expectation = deps.expectations.check(SET.metadata.uid, () => false);
  return expectation.kind === 'satisfied' ? [] : expectation.names;
}

describe('a POST that failed', () => {
  test.each([
    { with: 'what is invalid', failure: new ApiError(422, 'Invalid', 'no'), mayExist: false },
    { with: 'a quota', failure: new ApiError(403, 'Forbidden', 'no'), mayExist: false },
    { with: 'too many requests', failure: new ApiError(429, 'TooManyRequests', 'no'), mayExist: false },
    { with: 'an internal error', failure: new ApiError(500, 'InternalError', 'no'), mayExist: true },
    { with: 'a server that is not there', failure: new ApiError(503, 'ServiceUnavailable', 'no'), mayExist: true },
    { with: 'a gateway that gave up', failure: new ApiError(504, 'Timeout', 'no'), mayExist: true },
    { with: 'a broken connection', failure: new ApiError(0, 'Unreachable', 'no'), mayExist: true },
    { with: 'a closed gate', failure: new GateClosedError('outage', 'control', 'no'), mayExist: false },
    { with: 'anything else', failure: new Error('no'), mayExist: true },
  ])('with $with may have made a Machine: $mayExist', async ({ failure, mayExist }) => {
    const deps = new SetWorld([SET]);
    deps.client.failures.push(failure);

    expect(await create(deps, 1)).toBe(failure);

    expect(unsettled(deps)).toEqual(mayExist ? ['set-1-new-1'] : []);
  });

  test.each([
    { with: 'a quota', failure: new ApiError(403, 'Forbidden', 'no') },
    { with: 'what is invalid', failure: new ApiError(422, 'Invalid', 'no') },
    { with: 'too many requests', failure: new ApiError(429, 'TooManyRequests', 'no') },
    { with: 'a closed gate', failure: new GateClosedError('unproven', 'control', 'no') },
  ])('with $with says nothing of an earlier one of that name whose answer was lost', async ({ failure }) => {
    const deps = new SetWorld([SET]);
    deps.client.failures.push(new ApiError(0, 'Unreachable', 'lost'), failure);

    await create(deps, 1);
    expect(await create(deps, 2, ['set-1-new-1'])).toBe(failure);

    expect(unsettled(deps)).toEqual(['set-1-new-1']);
  });

  test('is repeated under its name before another one is chosen', async () => {
    const deps = new SetWorld([SET]);

    await create(deps, 2, ['set-1-lost']);

    expect(deps.client.writes.map(({ what }) => what)).toEqual(['machines/set-1-lost', 'machines/set-1-new-1']);
    expect(unsettled(deps)).toEqual([]);
  });

  test('ends the round: a broken template costs few requests', async () => {
    const deps = new SetWorld([SET]);
    const failure = new ApiError(422, 'Invalid', 'no');
    deps.client.failures.push(undefined, failure, failure);

    expect(await create(deps, 20)).toBe(failure);
    expect(deps.client.writes).toHaveLength(3);
    expect((await deps.metrics.created.get()).values).toMatchObject([{ value: 1 }]);
  });

  test.each([
    { failure: new ApiError(422, 'Invalid', 'no'), events: ['FailedCreate'] },
    { failure: new GateClosedError('outage', 'control', 'no'), events: [] },
  ])('is told: $events', async ({ failure, events }) => {
    const deps = new SetWorld([SET]);
    deps.client.failures.push(failure);

    await create(deps, 1);

    expect(deps.events).toEqual(events);
  });
});

test('a name is remembered before it is asked for', async () => {
  const deps = new SetWorld([SET]);
  const seen: (readonly string[])[] = [];
  deps.client.create = () => {
    seen.push(unsettled(deps));
    return Promise.reject(new ApiError(422, 'Invalid', 'no'));
  };

  await expect(scaleUp(deps, { set: SET, pending: [], signal, missing: () => 1 })).rejects.toThrow('no');

  expect(seen).toEqual([['set-1-new-1']]);
});

describe('a name that is taken', () => {
  const taken = new ApiError(409, 'AlreadyExists', 'taken');
  const ours = machine((m) => {
    m.metadata.name = 'set-1-lost';
    m.metadata.ownerReferences = [controllerReference(SET, 'machine.sapcloud.io/v1alpha1', 'MachineSet')];
  });

  test('by our own POST whose answer was lost is the success', async () => {
    const deps = new SetWorld([SET]);
    deps.client.put(machineResource, ours);
    deps.client.failures.push(taken);

    expect(await create(deps, 1, ['set-1-lost'])).toBe(1);

    expect(deps.machines.get('default/set-1-lost')).toBe(ours);
    expect(unsettled(deps)).toEqual([]);
  });

  test.each([
    { what: 'that is there', found: [ours] },
    { what: 'that somebody deleted meanwhile', found: [] },
  ])('by our own POST, of a Machine $what, counts as created', async ({ found }) => {
    const deps = new SetWorld([SET]);
    deps.brake.observe(SET.metadata.uid, 1, 1);
    deps.client.put(machineResource, ...found);
    deps.client.failures.push(taken);

    await create(deps, 1, ['set-1-lost']);

    expect(deps.brake.spending(SET.metadata.uid).machines).toBe(1);
    expect(unsettled(deps)).toEqual([]);
  });

  test('by a stranger leads to another name', async () => {
    const deps = new SetWorld([SET]);
    deps.client.put(machineResource, { metadata: { ...ours.metadata, ownerReferences: [] } });
    deps.client.failures.push(taken);

    await create(deps, 1, ['set-1-lost']);

    expect(deps.client.writes.map(({ what }) => what)).toEqual(['machines/set-1-lost', 'machines/set-1-new-1']);
  });

  test('is not asked for when the cache knows as much', async () => {
    const known = machine((m) => void (m.metadata.name = 'set-1-new-1'));
    const deps = new SetWorld([SET], [known]);

    await create(deps, 1);

    expect(deps.client.writes.map(({ what }) => what)).toEqual(['machines/set-1-new-2']);
  });
});

test('replicas that fall stop the rest', async () => {
  const deps = new SetWorld([SET]);
  const round = { set: SET, pending: [], signal, missing: () => (deps.client.writes.length < 3 ? 100 : 0) };

  expect(await scaleUp(deps, round)).toBe(3);
});
