import { setImmediate } from 'node:timers/promises';

import { expect, test } from '@jest/globals';

import { machine } from '../../test/builders.ts';
import { FakeClock } from '../clock/fake-clock.ts';
import { SetBackError } from '../gate/outage.ts';
import { ApiError } from '../kube/errors.ts';
import { machines, nodes } from '../kube/resource.ts';
import { ClusterContinuity } from './cluster-continuity.ts';
import { KnownHistory } from './known-history.ts';

const signal = new AbortController().signal;

/** A cluster with two kinds that are known up to 100. */
function start() {
  const continuity = new ClusterContinuity(new FakeClock());
  const told: string[] = [];
  continuity.listen({ doubted: () => told.push('doubted'), setBack: (why) => told.push(why) });
  const server = { at: '100', remembers: true, refusesNodes: false, losesNodes: false, lists: 0 };
  const kinds = [machines, nodes].map((resource) => {
    const history = new KnownHistory();
    const last = machine((m) => Object.assign(m.metadata, { resourceVersion: '90' }));
    history.changed(last);
    history.reached('100');
    const list = (_resource: unknown, { resourceVersionMatch }: { resourceVersionMatch?: string } = {}): never => {
      server.lists += 1;
      const answer = async (): Promise<unknown> => {
        if (server.refusesNodes && resource === nodes) throw new ApiError(403, 'Forbidden', 'may not list nodes');
        if (server.losesNodes && resource === nodes) throw new ApiError(503, 'ServiceUnavailable', 'no answer');
        if (resourceVersionMatch === undefined) return { metadata: { resourceVersion: server.at }, items: [] };
        if (!server.remembers) throw new ApiError(410, 'Expired', 'compacted');
        return { metadata: { resourceVersion: '90' }, items: [last] };
      };
      return answer() as never;
    };
    return continuity.add({ resource, namespace: 'shoot', reader: { list }, history });
  });
  const [ofMachines, ofNodes] = kinds;
  if (ofMachines === undefined || ofNodes === undefined) throw new Error('two kinds were added');
  return { continuity, told, server, ofMachines, ofNodes };
}

test('costs one request while no watch breaks, and is settled', async () => {
  const { continuity, server, told } = start();

  await continuity.verify(signal);

  expect([server.lists, continuity.isSettled, told]).toEqual([1, true, []]);
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
  expect([server.lists, continuity.isSettled]).toEqual([4, true]);
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

test('has a kind listed anew whose watch broke and whose last change the server no longer remembers, and no other', async () => {
  const { continuity, server, ofMachines, ofNodes } = start();
  server.remembers = false;
  ofNodes.broke();

  await continuity.verify(signal);

  await expect(ofNodes.untilVerified(signal)).resolves.toBe('unknown');
  await expect(ofMachines.untilVerified(signal)).resolves.toBe('same');
  expect([continuity.isInDoubt, continuity.isSettled]).toEqual([false, false]);
  ofNodes.listed();
  await setImmediate();
  expect(continuity.isSettled).toBe(true);
});

test('waits for no kind that we may not read any more', async () => {
  const { continuity, server, ofNodes } = start();
  server.refusesNodes = true;
  ofNodes.broke();

  // It may have just started.
  await expect(continuity.verify(signal)).rejects.toMatchObject({ reason: 'Forbidden' });
  await expect(continuity.verify(signal)).rejects.toMatchObject({ reason: 'Forbidden' });
  await continuity.verify(signal);

  await expect(ofNodes.untilVerified(signal)).resolves.toBe('unknown');
  expect(continuity.isSettled).toBe(true);
});

test('waits for a kind that the server does not answer for, however long that lasts', async () => {
  const { continuity, server, ofNodes } = start();
  server.losesNodes = true;
  ofNodes.broke();

  for (let i = 0; i < 5; i++) await expect(continuity.verify(signal)).rejects.toMatchObject({ code: 503 });

  expect(continuity.isInDoubt).toBe(true);
});
