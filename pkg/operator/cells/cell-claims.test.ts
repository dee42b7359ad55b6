import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { MemoryLeases } from '../../../test/memory-leases.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { gateMetrics } from '../../base/metrics/gate.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { Outages } from '../../kube/gate/outages.ts';
import { CellClaims } from './cell-claims.ts';
import { ClaimLeases } from './claim-leases.ts';
import { TargetClaims } from './target-claims.ts';

const NAMESPACE: KubeObject = {
  metadata: { name: 'a', namespace: '', uid: 'a', resourceVersion: '1', creationTimestamp: '' },
};

/** A cell without a target cluster, whose claim fails while `failing` says so. */
function start() {
  const clock = new FakeClock();
  const log = silentLogger;
  const state: { failing: Error | undefined } = { failing: undefined };
  const hasNodes = (): boolean => {
    if (state.failing !== undefined) throw state.failing;
    return false;
  };
  const claims = new CellClaims({
    targets: new TargetClaims({
      leases: new ClaimLeases({ leases: new MemoryLeases(), isNeeded: () => Promise.resolve(true) }),
      list: () => Promise.resolve([]),
      hasMachines: () => true,
      withMachines: () => ['a'],
      findMachines: () => Promise.resolve(true),
      hasNodes,
      common: {
        cells: () => ['a'],
        nodesOf: () => 'none',
        untilPresent: () => Promise.resolve(),
        mayMoveTo: () => false,
      },
      replicas: { haveOneTarget: true, areSettled: true },
    }),
    workloads: { claim: () => Promise.resolve() },
    common: undefined,
    outages: new Outages({ clock, log, metrics: gateMetrics(new Registry()), periodMs: 60_000, timeoutMs: 30_000 }),
    recorder: { record: () => undefined },
    clock,
    log,
  });
  const claim = (): Promise<void> => claims.of(NAMESPACE, () => undefined).claimNoTarget();
  return { claims, claim, clock, state };
}

test('a cell that waits for a minute because a claim is refused counts as one that is not managed, and says why, until it may begin', async () => {
  const { claims, claim, clock, state } = start();
  state.failing = new ApiError(403, 'Forbidden', 'leases are forbidden');
  await expect(claim()).rejects.toThrow('forbidden');
  clock.advance(59_000);
  await expect(claim()).rejects.toThrow('forbidden');
  expect([...claims.taken]).toEqual([]);

  clock.advance(1_000);
  await expect(claim()).rejects.toThrow('forbidden');
  expect([...claims.taken]).toEqual([['a', 'waiting for its target cluster: leases are forbidden']]);

  state.failing = undefined;
  await claim();
  expect([...claims.taken]).toEqual([]);
});

test('a cell whose API server does not answer has an outage, and counts as one that runs', async () => {
  const { claims, claim, clock, state } = start();
  state.failing = new ApiError(0, 'Unreachable', 'no answer');
  await expect(claim()).rejects.toThrow('no answer');
  clock.advance(120_000);
  await expect(claim()).rejects.toThrow('no answer');

  expect([...claims.taken]).toEqual([]);
});
