import { expect, test } from '@jest/globals';

import type { Lease } from '../../apis/wire.ts';
import { toMicroTimestamp } from '../../base/clock/clock.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { Replicas } from './replicas.ts';

const LEASE_MS = 15_000;

function start() {
  const clock = new FakeClock();
  const leases = new MemoryInformer<Lease>();
  const replicas = new Replicas({ clock, leases });
  let version = 0;
  const renew = (name: string, holderIdentity = name): void => {
    version += 1;
    leases.put({
      metadata: { name, namespace: 'ns', uid: name, resourceVersion: String(version), creationTimestamp: '' },
      spec: { holderIdentity, leaseDurationSeconds: LEASE_MS / 1_000, renewTime: toMicroTimestamp(version) },
    });
  };
  const identities = (): readonly string[] => replicas.live.map(({ identity }) => identity);
  return { clock, leases, replicas, renew, identities };
}

test('a replica lives for the duration of its Lease after each renewal, by the clock of who looks', () => {
  const { clock, renew, identities } = start();

  renew('a');
  clock.advance(10_000);
  renew('b');
  clock.advance(4_999);
  const both = identities();
  clock.advance(1);
  const one = identities();
  renew('a');

  expect(both).toEqual(['a', 'b']);
  expect(one).toEqual(['b']);
  expect(identities().toSorted()).toEqual(['a', 'b']);
});

test('a replica that has released its Lease, or whose Lease was deleted, does not live', () => {
  const { leases, renew, identities } = start();

  renew('a');
  renew('b');
  renew('a', '');
  leases.remove('ns/b');

  expect(identities()).toEqual([]);
});

test('a Lease that nobody has renewed for an hour is abandoned, one that was renewed is not', () => {
  const { clock, replicas, renew } = start();

  renew('gone');
  renew('left', '');
  clock.advance(3_599_999);
  renew('alive');
  const before = replicas.abandoned;
  clock.advance(1);

  expect(before).toEqual([]);
  expect(replicas.abandoned.map(({ metadata }) => metadata.name)).toEqual(['gone', 'left']);
});
