import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../../test/memory-client.ts';
import type { IronCoreMachinePool, IronCoreMachinePoolStatus } from '../../api/machine-pool.ts';
import { silentLogger } from '../../../../base/log/logger.ts';
import { HeldClaims, type HeldClaim } from './held-claims.ts';

const { signal } = new AbortController();

function world(status: IronCoreMachinePoolStatus = {}) {
  const client = new MemoryClient();
  const events: string[] = [];
  const poolRecorder = {
    event: ({ reason, message }: { readonly reason: string; readonly message: string }) =>
      void events.push(`${reason}: ${message}`),
  };
  const held = new HeldClaims({ writer: client, poolRecorder, clock: new FakeClock(), log: silentLogger });
  const pool: IronCoreMachinePool = {
    metadata: { name: 'p', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    status,
  };
  const conditions = (): IronCoreMachinePoolStatus['conditions'] =>
    (client.writes.at(-1)?.body as { status: IronCoreMachinePoolStatus } | undefined)?.status.conditions;
  return { client, events, held, pool, conditions };
}

const claimHeld = (kind: HeldClaim['kind'], name: string, machine: string, annotations = {}): HeldClaim => ({
  kind,
  object: { metadata: { name, namespace: 'ns', uid: name, resourceVersion: '1', creationTimestamp: '', annotations } },
  machine,
});

test('what is held is told by the MachinePool, with what helps, beside its other conditions, once', async () => {
  const ready = { type: 'Ready', status: 'True', reason: 'HeartbeatReceived', message: 'm' } as const;
  const it = world({ conditions: [ready] });

  await it.held.report(it.pool, [claimHeld('Volume', 'v', 'm'), claimHeld('Volume', 'a', 'n')], signal);

  const told = it.conditions() ?? [];
  expect(told).toMatchObject([ready, { type: 'ClaimsHeld', status: 'True', reason: 'MachineNotSeenGone' }]);
  const help =
    /kubectl annotate --overwrite machinepools.compute.ironcore.dev p safety.*give-up-missing-machines-until/;
  expect(told[1]?.message).toMatch(help);
  expect(told[1]?.message).toContain('Held (2): Volume ns/a (of Machine n), Volume ns/v (of Machine m). ');
  expect(it.events).toEqual([expect.stringMatching(help)]);
  const again = world({ conditions: told });
  await again.held.report(again.pool, [claimHeld('Volume', 'a', 'n'), claimHeld('Volume', 'v', 'm')], signal);
  expect([again.client.writes, again.events]).toEqual([[], []]);
});

test.each([
  { kind: 'Volume', resource: 'volumes.storage.ironcore.dev' },
  { kind: 'NetworkInterface', resource: 'networkinterfaces.networking.ironcore.dev' },
] as const)('the condition says how a $kind alone is given up, and what is wrong with its annotation', async (row) => {
  const { held: claims, pool, conditions } = world();
  const annotations = { 'safety.machine.sapcloud.io/give-up-missing-machines-until': '2020-01-01T00:00:00Z' };

  await claims.report(pool, [claimHeld(row.kind, 'a', 'm', annotations)], signal);

  const message = conditions()?.[0]?.message;
  expect(message).toContain(
    `For ${row.kind} ns/a alone (others likewise): The current value of the annotation is in the past. If they are gone permanently: ` +
      `kubectl -n ns annotate --overwrite ${row.resource} a safety.machine.sapcloud.io/give-up-missing-machines-until=`,
  );
});

test('nothing is written where none was ever held, and the condition ends with the last one', async () => {
  const { client, held, pool } = world();
  await held.report(pool, [], signal);
  expect(client.writes).toEqual([]);

  const before = { type: 'ClaimsHeld', status: 'True', reason: 'MachineNotSeenGone', message: 'm' } as const;
  const ended = world({ conditions: [before] });
  await ended.held.report(ended.pool, [], signal);
  expect(ended.conditions()).toMatchObject([{ status: 'False', reason: 'NoneHeld' }]);
  expect(ended.events).toEqual([]);

  const left = world({ conditions: [before] });
  await left.held.leave(left.pool, signal);
  expect(left.conditions()).toMatchObject([{ status: 'Unknown', reason: 'NotServed' }]);
});
