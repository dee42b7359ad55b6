import { describe, expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { MemorySetParts } from '../../../test/machine-set-parts.ts';
import { GateClosedError } from '../../gate/gate.ts';
import { ApiError } from '../../kube/errors.ts';
import { machines as machineResource } from '../../kube/resource.ts';
import { controllerReference } from '../../reconcile/ownership.ts';
import { scaleUp } from './scale-up.ts';

const SET = machineSet();
const signal = new AbortController().signal;

/** Creates until nothing is missing. */
async function create(parts: MemorySetParts, count: number, pending: readonly string[] = []): Promise<unknown> {
  const made = (): number => parts.client.writes.length;
  const [outcome] = await Promise.allSettled([
    scaleUp(parts, { set: SET, pending, signal, missing: () => count - made() }),
  ]);
  return outcome.status === 'fulfilled' ? outcome.value : outcome.reason;
}

function unsettled(parts: MemorySetParts): readonly string[] {
  const expectation = parts.expectations.check(SET.metadata.uid, () => false);
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
    { with: 'a closed gate', failure: new GateClosedError('frozen', 'control', 'no'), mayExist: false },
    { with: 'anything else', failure: new Error('no'), mayExist: true },
  ])('with $with may have made a Machine: $mayExist', async ({ failure, mayExist }) => {
    const parts = new MemorySetParts([SET], []);
    parts.client.failures.push(failure);

    expect(await create(parts, 1)).toBe(failure);

    expect(unsettled(parts)).toEqual(mayExist ? ['set-1-new-1'] : []);
  });

  test('is repeated under its name before another one is chosen', async () => {
    const parts = new MemorySetParts([SET], []);

    await create(parts, 2, ['set-1-lost']);

    expect(parts.client.writes.map(({ what }) => what)).toEqual(['machines/set-1-lost', 'machines/set-1-new-1']);
    expect(unsettled(parts)).toEqual([]);
  });

  test('ends the round: a broken template costs few requests', async () => {
    const parts = new MemorySetParts([SET], []);
    const failure = new ApiError(422, 'Invalid', 'no');
    parts.client.failures.push(undefined, failure, failure);

    expect(await create(parts, 20)).toBe(failure);
    expect(parts.client.writes).toHaveLength(3);
  });

  test.each([
    { failure: new ApiError(422, 'Invalid', 'no'), events: ['FailedCreate'] },
    { failure: new GateClosedError('frozen', 'control', 'no'), events: [] },
  ])('is told: $events', async ({ failure, events }) => {
    const parts = new MemorySetParts([SET], []);
    parts.client.failures.push(failure);

    await create(parts, 1);

    expect(parts.events).toEqual(events);
  });
});

test('a name is remembered before it is asked for', async () => {
  const parts = new MemorySetParts([SET], []);
  const seen: (readonly string[])[] = [];
  parts.client.create = () => {
    seen.push(unsettled(parts));
    return Promise.reject(new ApiError(422, 'Invalid', 'no'));
  };

  await expect(scaleUp(parts, { set: SET, pending: [], signal, missing: () => 1 })).rejects.toThrow('no');

  expect(seen).toEqual([['set-1-new-1']]);
});

describe('a name that is taken', () => {
  const taken = new ApiError(409, 'AlreadyExists', 'taken');
  const ours = machine((m) => {
    m.metadata.name = 'set-1-lost';
    m.metadata.ownerReferences = [controllerReference(SET, 'machine.sapcloud.io/v1alpha1', 'MachineSet')];
  });

  test('by our own POST whose answer was lost is the success', async () => {
    const parts = new MemorySetParts([SET], []);
    parts.client.put(machineResource, ours);
    parts.client.failures.push(taken);

    expect(await create(parts, 1, ['set-1-lost'])).toBe(1);

    expect(parts.machines.get('default/set-1-lost')).toBe(ours);
    expect(unsettled(parts)).toEqual([]);
  });

  test('by a stranger leads to another name', async () => {
    const parts = new MemorySetParts([SET], []);
    parts.client.put(machineResource, { metadata: { ...ours.metadata, ownerReferences: [] } });
    parts.client.failures.push(taken);

    await create(parts, 1, ['set-1-lost']);

    expect(parts.client.writes.map(({ what }) => what)).toEqual(['machines/set-1-lost', 'machines/set-1-new-1']);
  });

  test('is not asked for when the cache knows as much', async () => {
    const known = machine((m) => void (m.metadata.name = 'set-1-new-1'));
    const parts = new MemorySetParts([SET], [known]);

    await create(parts, 1);

    expect(parts.client.writes.map(({ what }) => what)).toEqual(['machines/set-1-new-2']);
  });
});

test('replicas that fall stop the rest', async () => {
  const parts = new MemorySetParts([SET], []);
  const round = { set: SET, pending: [], signal, missing: () => (parts.client.writes.length < 3 ? 100 : 0) };

  expect(await scaleUp(parts, round)).toBe(3);
});
