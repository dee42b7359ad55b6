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
  const renew = (name: string, holderIdentity = name, creationTimestamp = ''): void => {
    version += 1;
    leases.put({
      metadata: { name, namespace: 'ns', uid: name, resourceVersion: String(version), creationTimestamp },
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

test('a replica that has released its Lease does not live', () => {
  const { renew, identities } = start();

  renew('a');
  renew('a', '');

  expect(identities()).toEqual([]);
});

test('a replica that does not live may have lived until a moment ago if its Lease was first seen just now', () => {
  const { clock, replicas, renew } = start();
  const ended = (): number => replicas.endedWithin(60_000).length;

  renew('known');
  clock.advance(30_000);
  renew('released', '');
  const both = ended();
  clock.advance(30_000);
  renew('known', '');
  const one = ended();
  clock.advance(30_000);

  expect([both, one, ended()]).toEqual([2, 1, 0]);
});

test('a replica whose Lease was deleted lives as long as it would have without that, and has come when it came first', () => {
  const { clock, leases, replicas, renew, identities } = start();

  renew('a', 'a', '2026-01-01T00:00:01Z');
  renew('b', 'b', '2026-01-01T00:00:02Z');
  leases.remove('ns/a');
  leases.remove('ns/b');
  clock.advance(LEASE_MS - 1);
  const both = identities();
  renew('a', 'a', '2026-01-01T00:00:03Z');
  clock.advance(1);

  expect(both).toEqual(['a', 'b']);
  expect(replicas.live).toMatchObject([{ identity: 'a', since: '2026-01-01T00:00:01Z' }]);
  clock.advance(3_600_000);
  expect(replicas.abandoned.map(({ metadata }) => metadata.name)).toEqual(['a']);
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
