import { setImmediate } from 'node:timers/promises';

import { describe, expect, test } from '@jest/globals';

import { SECOND } from '../../../test/durations.ts';
import { machine } from '../../../test/builders.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ServerAheadError, SetBackError } from '../gate/outage.ts';
import { ApiError } from '../client/errors.ts';
import { machines, nodes, secrets } from '../client/resource.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import { ClusterContinuity, type KindFacts, verdictOn } from './cluster-continuity.ts';
import { ObservedHistory } from './observed-history.ts';

const signal = new AbortController().signal;

const forbidden = ({ plural }: { readonly plural: string }): ApiError =>
  new ApiError(403, 'Forbidden', `may not list ${plural}`);

/** A cluster with kinds that are known up to 100; Machines are probed, Secrets optional. */
function start(options?: ConstructorParameters<typeof ClusterContinuity>[1]) {
  const clock = new FakeClock();
  const continuity = new ClusterContinuity(clock, options);
  const told: string[] = [];
  continuity.listen({ doubted: () => told.push('doubted'), setBack: (why) => told.push(why) });
  const last = machine((m) => Object.assign(m.metadata, { resourceVersion: '90' }));
  const server = {
    at: '100',
    remembers: true,
    /** Whether it answers for a version that it has not reached. */
    waitsForVersions: false,
    /** What lists of these kinds end with. */
    failures: new Map<Resource<KubeObject>, Error>(),
    lists: 0,
    gets: 0,
    /** How the last changes are stored, and what GETs of these kinds end with. */
    stored: last as KubeObject | undefined,
    getFailures: new Map<Resource<KubeObject>, Error>(),
  };
  const add = (resource: Resource<KubeObject>, isOptional: boolean) => {
    const history = new ObservedHistory();
    history.changed(last);
    history.reached('100');
    const list = (
      _resource: unknown,
      { resourceVersionMatch, fieldSelector }: { resourceVersionMatch?: string; fieldSelector?: string } = {},
    ): never => {
      server.lists += 1;
      const answer = async (): Promise<unknown> => {
        const failure = server.failures.get(resource);
        if (failure !== undefined) throw failure;
        const isByName = fieldSelector !== undefined && resourceVersionMatch === undefined;
        if (isByName)
          return { metadata: { resourceVersion: server.at }, items: server.stored === undefined ? [] : [last] };
        if (resourceVersionMatch === undefined) return { metadata: { resourceVersion: server.at }, items: [] };
        if (server.waitsForVersions) return await new Promise<never>(() => undefined);
        if (!server.remembers) throw new ApiError(410, 'Expired', 'compacted');
        return { metadata: { resourceVersion: '90' }, items: [last] };
      };
      return answer() as never;
    };
    const get = async (): Promise<never> => {
      server.gets += 1;
      const failure = server.getFailures.get(resource);
      if (failure !== undefined) throw failure;
      if (server.stored === undefined) throw new ApiError(404, 'NotFound', 'gone');
      return server.stored as never;
    };
    return continuity.add(
      { resource, namespace: 'shoot', labelSelector: undefined, reader: { list, get }, history },
      { isOptional, refused: (err) => told.push(err?.message ?? `${resource.plural} listed`) },
    );
  };
  const verify = (): Promise<string> =>
    continuity.verify(signal).then(
      () => 'verified',
      (err: Error) => err.message,
    );
  return {
    clock,
    continuity,
    told,
    server,
    verify,
    add,
    ofMachines: add(machines, false),
    ofNodes: add(nodes, false),
    ofSecrets: add(secrets, true),
  };
}

test('costs one list, and one GET a kind, while no watch breaks, and is settled', async () => {
  const { continuity, server, told } = start();

  await continuity.verify(signal);

  expect([server.lists, server.gets, continuity.isSettled, told]).toEqual([1, 3, true, []]);
});

test('where many clusters are at rest, asks etcd only after a while, but at once in doubt and before anything is destroyed', async () => {
  const { clock, continuity, ofMachines, server, verify } = start({ historyForMs: 290 * SECOND });
  const asked = async (look: () => Promise<unknown>): Promise<number> => {
    const { gets } = server;
    await look();
    return server.gets - gets;
  };

  expect([await asked(verify), await asked(verify)]).toEqual([3, 0]);
  clock.advance(240 * SECOND);
  expect(await asked(verify)).toBe(0);
  expect(await asked(() => continuity.requireHistory(signal))).toBe(3);
  clock.advance(289 * SECOND);
  ofMachines.broke();
  expect([await asked(verify), await asked(verify)]).toEqual([3, 0]);
  clock.advance(SECOND);
  expect(await asked(verify)).toBe(3);
});

test('is in doubt from a break until all kinds have been compared; then the watch goes on', async () => {
  const { continuity, server, told, ofNodes } = start();
  ofNodes.broke();
  let goesOn = false;
  const verified = ofNodes.untilVerified(signal).finally(() => {
    goesOn = true;
  });
  await setImmediate();
  expect(goesOn).toBe(false);
  expect([continuity.isInDoubt, continuity.isSettled, told]).toEqual([true, false, ['doubted']]);

  await continuity.verify(signal);

  await expect(verified).resolves.toBe('same');
  expect([server.lists, continuity.isSettled]).toEqual([6, true]);
});

test('stays in doubt when the server does not answer, or a watch breaks while it is asked', async () => {
  const { continuity, server, ofMachines, ofNodes } = start();
  ofNodes.broke();
  server.at = '99';
  await expect(continuity.verify(signal)).rejects.toBeInstanceOf(SetBackError);
  expect(continuity.isInDoubt).toBe(true);

  server.at = '101';
  const verifying = continuity.verify(signal);
  ofMachines.broke();
  await verifying;

  expect(continuity.isInDoubt).toBe(true);
  await continuity.verify(signal);
  expect(continuity.isSettled).toBe(true);
});

test.each([
  { stored: 'as it was', resourceVersion: '90', lists: 'none' },
  { stored: 'changed since', resourceVersion: '95', lists: 'all' },
])(
  'a kind whose watch broke, whose last change is too old to be remembered, and $stored: lists $lists anew',
  async ({ resourceVersion, lists }) => {
    const { continuity, server, ofMachines, ofNodes, ofSecrets } = start();
    server.remembers = false;
    server.stored = machine((m) => Object.assign(m.metadata, { resourceVersion }));
    ofNodes.broke();

    await continuity.verify(signal);

    const members = [ofMachines, ofNodes, ofSecrets];
    const found = await Promise.all(members.map((member) => member.untilVerified(signal)));
    expect(new Set(found)).toEqual(new Set([lists === 'all' ? 'unknown' : 'same']));
    expect([continuity.isInDoubt, continuity.isSettled]).toEqual([false, lists === 'none']);
    for (const member of members) member.listed();
    expect(continuity.isSettled).toBe(true);
  },
);

test('kinds that have to be listed although their watches are open are told so, once', async () => {
  const { continuity, server, ofMachines, ofNodes, ofSecrets } = start();
  const told: string[] = [];
  ofMachines.onMustList(() => told.push('machines'));
  ofNodes.onMustList(() => told.push('nodes'));
  ofSecrets.onMustList(() => told.push('secrets'));
  server.remembers = false;
  server.stored = machine((m) => Object.assign(m.metadata, { resourceVersion: '95' }));
  ofNodes.broke();
  const verifying = continuity.verify(signal);
  // It waits for the next verification: what it would list now was compared with nothing.
  ofSecrets.broke();

  await verifying;
  await continuity.verify(signal);

  expect(told).toEqual(['machines']);
});

test('a kind of which nothing was ever seen, and whose watch broke, is listed anew alone', async () => {
  const { continuity, ofMachines } = start();
  const empty = continuity.add({
    resource: nodes,
    namespace: undefined,
    labelSelector: undefined,
    reader: {
      get: () => Promise.reject(new Error('not asked for')),
      list: () => Promise.resolve({ metadata: { resourceVersion: '100' }, items: [] }),
    },
    history: new ObservedHistory(),
  });
  empty.broke();

  await continuity.verify(signal);

  await expect(empty.untilVerified(signal)).resolves.toBe('unknown');
  await expect(ofMachines.untilVerified(signal)).resolves.toBe('same');
});

test('finds a server that was set back although it does not answer for the version of the last change, which is yet to come', async () => {
  const { continuity, server, ofNodes } = start();
  server.at = '80';
  server.waitsForVersions = true;
  ofNodes.broke();

  await expect(continuity.verify(signal)).rejects.toBeInstanceOf(SetBackError);
});

describe('etcd that was set back while the API server goes on', () => {
  const behind = machine((m) => Object.assign(m.metadata, { resourceVersion: '80' }));

  test.each(['verify', 'requireHistory', 'in doubt'] as const)('is found by %s', async (how) => {
    const { continuity, server, ofNodes } = start();
    server.stored = behind;
    if (how === 'in doubt') ofNodes.broke();

    await expect(continuity[how === 'in doubt' ? 'verify' : how](signal)).rejects.toBeInstanceOf(SetBackError);
  });

  test('is not looked for in a kind that was given up, or is to be listed', async () => {
    const { continuity, server, ofMachines, ofNodes, ofSecrets } = start();
    server.remembers = false;
    server.stored = machine((m) => Object.assign(m.metadata, { resourceVersion: '95' }));
    ofNodes.broke();
    await continuity.verify(signal);
    server.gets = 0;

    await continuity.requireHistory(signal);
    expect(server.gets).toBe(0);
    for (const member of [ofMachines, ofNodes, ofSecrets]) member.listed();
    await continuity.requireHistory(signal);
    expect(server.gets).toBe(3);
  });

  test.each([
    { what: 'the probed kind is not answered', of: machines, code: 503, want: 'no answer' },
    { what: 'the probed kind may not be read alone', of: machines, code: 403, want: 'verified' },
    { what: 'another kind is not answered', of: nodes, code: 503, want: 'verified' },
  ])('cannot be told when $what: $want', async ({ of, code, want }) => {
    const { server, verify } = start();
    server.getFailures.set(of, new ApiError(code, code === 403 ? 'Forbidden' : 'ServiceUnavailable', 'no answer'));

    expect(await verify()).toBe(want);
  });

  test('shows when lists go on showing what it does not hold', async () => {
    const { continuity, server } = start();
    await expect(continuity.requireNotAhead(signal)).resolves.toBeUndefined();

    server.stored = behind;

    await expect(continuity.requireNotAhead(signal)).rejects.toBeInstanceOf(ServerAheadError);
  });
});

test('has it listed anew also when the server did not answer the first attempt to compare', async () => {
  const { server, verify, ofNodes } = start();
  server.failures.set(machines, new ApiError(503, 'ServiceUnavailable', 'no answer'));
  ofNodes.broke();
  expect(await verify()).toBe('no answer');
  server.failures.clear();
  server.remembers = false;
  server.stored = undefined;

  expect(await verify()).toBe('verified');

  await expect(ofNodes.untilVerified(signal)).resolves.toBe('unknown');
});

test('waits for a kind that the server does not answer for, however long that lasts', async () => {
  const { clock, continuity, server, verify, ofNodes } = start();
  server.failures.set(nodes, new ApiError(503, 'ServiceUnavailable', 'no answer'));
  ofNodes.broke();

  for (let i = 0; i < 5; i++) {
    expect(await verify()).toBe('no answer');
    clock.advance(10 * SECOND);
  }

  expect(continuity.isInDoubt).toBe(true);
});

test.each<{ what: string; facts: Partial<KindFacts>; want: ReturnType<typeof verdictOn> }>([
  { what: 'that the server has just begun to refuse', facts: { result: 'refused', refusedForMs: 0 }, want: 'wait' },
  { what: 'that may yet be granted', facts: { result: 'refused', refusedForMs: 9_999 }, want: 'wait' },
  { what: 'that is refused for long', facts: { result: 'refused', refusedForMs: 10_000 }, want: 'refused' },
  {
    what: 'that is refused for long, though its watch is open',
    facts: { result: 'refused', refusedForMs: 10_000, isBroken: false },
    want: 'refused',
  },
  {
    what: 'that had to be listed, and is refused',
    facts: { result: 'refused', refusedForMs: 0, mustList: 'yes' },
    want: 'wait',
  },
  {
    what: 'that was given up, and is refused again',
    facts: { result: 'refused', mustList: 'refused' },
    want: 'refused',
  },
  {
    what: 'that was given up, and is answered again',
    facts: { result: 'same', mustList: 'refused' },
    want: 'refused',
  },
  { what: 'that goes on where it was', facts: { result: 'same' }, want: 'no' },
  { what: 'that had to be listed, and goes on where it was', facts: { result: 'same', mustList: 'yes' }, want: 'no' },
  { what: 'that cannot be compared', facts: { result: 'unknown' }, want: 'yes' },
  { what: 'that cannot be compared, whose watch is open', facts: { result: 'unknown', isBroken: false }, want: 'no' },
  {
    what: 'whose watch is open, beside one that broke and cannot be compared',
    facts: { isBroken: false, isHistoryLost: true },
    want: 'yes',
  },
  {
    what: 'that was given up, beside such a one',
    facts: { mustList: 'refused', isHistoryLost: true },
    want: 'refused',
  },
  { what: 'of which nothing was ever seen', facts: { result: 'empty' }, want: 'yes' },
  {
    what: 'that has to be listed, whose watch is open',
    facts: { result: 'same', isBroken: false, mustList: 'yes' },
    want: 'yes',
  },
])('a kind $what: $want', ({ facts, want }) => {
  expect(
    verdictOn({ mustList: 'no', isBroken: true, result: 'same', isHistoryLost: false, refusedForMs: 0, ...facts }),
  ).toBe(want);
});

describe('a kind that is refused', () => {
  test('is not given up by a server that starts: all kinds are refused twice, one straggler once more', async () => {
    const { clock, continuity, server, told, verify, ofMachines, ofNodes } = start();
    ofMachines.broke();
    ofNodes.broke();
    const seen: string[] = [];
    for (const refused of [[machines, nodes, secrets], [machines, nodes, secrets], [nodes]]) {
      server.failures = new Map(refused.map((resource) => [resource, forbidden(resource)]));
      seen.push(await verify());
      clock.advance(700);
    }
    expect([seen, continuity.isInDoubt]).toEqual([
      ['may not list machines', 'may not list machines', 'may not list nodes'],
      true,
    ]);

    server.failures.clear();
    expect(await verify()).toBe('verified');

    await expect(ofNodes.untilVerified(signal)).resolves.toBe('same');
    expect([continuity.isSettled, ofNodes.isGivenUp, told]).toEqual([true, false, ['doubted', 'doubted']]);
  });

  test.each([
    { what: 'the probed kind is refused too', also: machines, failure: forbidden(machines) },
    {
      what: 'another kind is not answered',
      also: secrets,
      failure: new ApiError(503, 'ServiceUnavailable', 'no answer'),
    },
  ])('is not given up while $what, and only when it is refused for long afterwards', async ({ also, failure }) => {
    const { clock, server, verify, ofNodes } = start();
    ofNodes.broke();
    server.failures.set(nodes, forbidden(nodes));
    expect(await verify()).toBe('may not list nodes');
    clock.advance(9 * SECOND);
    server.failures.set(also, failure);
    expect(await verify()).toBe(failure.message);
    clock.advance(9 * SECOND);

    server.failures.delete(also);
    expect(await verify()).toBe('may not list nodes');
    clock.advance(9 * SECOND);
    expect(await verify()).toBe('may not list nodes');
    expect(ofNodes.isGivenUp).toBe(false);

    clock.advance(SECOND);
    expect(await verify()).toBe('verified');
    expect(ofNodes.isGivenUp).toBe(true);
  });

  test('for long leaves the doubt, and the cluster is not settled before it was listed', async () => {
    const { clock, continuity, server, told, verify, ofMachines, ofNodes } = start();
    server.failures.set(nodes, forbidden(nodes));
    ofNodes.broke();
    expect(await verify()).toBe('may not list nodes');
    clock.advance(10 * SECOND);
    expect(await verify()).toBe('verified');

    // The others go on; nobody waits for what will not come by itself.
    await expect(ofMachines.untilVerified(signal)).resolves.toBe('same');
    await expect(ofNodes.untilVerified(signal)).resolves.toBe('unknown');
    await expect(continuity.untilSettled(signal)).resolves.toBeUndefined();
    expect([continuity.isInDoubt, continuity.isSettled, ofNodes.mustList]).toEqual([false, false, true]);

    server.failures.clear();
    ofNodes.broke();
    expect([await verify(), continuity.isSettled]).toEqual(['verified', false]);
    ofNodes.listed();
    expect([continuity.isSettled, ofNodes.mustList, told]).toEqual([
      true,
      false,
      ['doubted', 'may not list nodes', 'doubted', 'nodes listed'],
    ]);
  });

  test('for long holds nobody up when it is optional', async () => {
    const { clock, continuity, server, verify, ofSecrets } = start();
    server.failures.set(secrets, forbidden(secrets));
    ofSecrets.broke();
    expect([await verify(), continuity.isSettled]).toEqual(['may not list secrets', false]);
    clock.advance(10 * SECOND);

    expect([await verify(), continuity.isSettled]).toEqual(['verified', true]);
    await expect(ofSecrets.untilVerified(signal)).resolves.toBe('unknown');
  });

  test.each([{ first: 'itself' }, { first: 'another one' }])(
    'for long keeps the doubt when it was added first, as the Nodes of a cluster of which all kinds are optional, and $first was read first',
    async ({ first }) => {
      const { server, clock, continuity, add, verify, ofMachines, ofNodes, ofSecrets } = start();
      for (const other of [ofMachines, ofNodes, ofSecrets]) other.remove();
      const ofFirst = add(nodes, true);
      const ofOther = add(secrets, true);
      const inOrder = first === 'itself' ? [ofFirst, ofOther] : [ofOther, ofFirst];
      for (const one of [ofFirst, ofOther]) one.remove();
      for (const one of inOrder) one.restore();
      server.failures.set(nodes, forbidden(nodes));
      ofFirst.broke();

      const answers: string[] = [];
      for (let i = 0; i < 4; i++) {
        answers.push(await verify());
        clock.advance(5 * SECOND);
      }

      expect(answers).toEqual(Array.from({ length: 4 }, () => 'may not list nodes'));
      expect([ofFirst.isGivenUp, continuity.isSettled]).toEqual([false, false]);
    },
  );

  test('does not hide that another one was set back', async () => {
    const { continuity, server, ofNodes } = start();
    server.failures.set(nodes, forbidden(nodes));
    server.at = '99';
    ofNodes.broke();

    await expect(continuity.verify(signal)).rejects.toBeInstanceOf(SetBackError);
  });

  test('may be granted when everything is read anew', async () => {
    const { clock, continuity, server, told, verify, ofNodes } = start();
    server.failures.set(nodes, forbidden(nodes));
    ofNodes.broke();
    await verify();
    clock.advance(10 * SECOND);
    await verify();

    ofNodes.listed();
    continuity.restart(continuity.breaks);

    expect([continuity.isSettled, told.at(-1)]).toEqual([true, 'nodes listed']);
  });

  test('for long when everything is read anew is given up too, unless it is the probed one, and goes on to have to be listed', async () => {
    const { clock, continuity, server, told, verify, ofMachines, ofNodes, ofSecrets } = start();
    server.at = '80';
    const giveUp = () =>
      [ofMachines, ofNodes, ofSecrets].map((member, i) => i !== 2 && member.giveUp(forbidden(nodes)));
    expect(giveUp()).toEqual([false, false, false]);
    clock.advance(10 * SECOND);
    // With each attempt it is found anew that it was set back.
    ofMachines.broke();
    await verify();

    expect(giveUp()).toEqual([false, true, false]);
    continuity.restart(continuity.breaks);

    expect([continuity.isInDoubt, continuity.isSettled, ofNodes.isGivenUp]).toEqual([false, false, true]);
    expect([ofMachines.mustList, told.at(-1)]).toEqual([false, 'may not list nodes']);
  });

  test('with 401 is no such: it is refused because of who asks, as all are, and stays in doubt', async () => {
    const { clock, continuity, server, verify, ofNodes } = start();
    server.failures.set(nodes, new ApiError(401, 'Unauthorized', 'who are you'));
    ofNodes.broke();
    await verify();
    clock.advance(20 * SECOND);

    expect(await verify()).toBe('who are you');
    expect(continuity.isInDoubt).toBe(true);
  });
});
