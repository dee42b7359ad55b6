import { describe, expect, test } from '@jest/globals';

import { machineDeployment } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { Outage } from '../../kube/gate/outage.ts';
import { conditionsDuring, showOutage } from './outage-condition.ts';

const NOW = Date.UTC(2026, 0, 1, 12);
const target: Outage = { cluster: 'target', sinceMs: Date.UTC(2026, 0, 1, 11, 59), why: 'connection refused' };
const control: Outage = {
  cluster: 'control',
  sinceMs: Date.UTC(2026, 0, 1, 11, 58),
  why: 'no response within 10000 ms',
};
const available = { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable' } as const;
const frozen = { type: 'Frozen', status: 'True', reason: 'OverShootingReplicaCount' } as const;

const during = (...outages: Outage[]) => conditionsDuring(outages, [available, frozen], NOW) ?? [];

describe('condition APIServerUnreachable', () => {
  test('names the cluster, since when and why, and leaves other conditions alone', () => {
    expect(during(target)).toEqual([
      available,
      frozen,
      {
        type: 'APIServerUnreachable',
        status: 'True',
        reason: 'NoAnswerToProbes',
        message:
          'API server of cluster "target" unreachable since 2026-01-01T11:59:00Z (connection refused): ' +
          'no object or VM of this cluster is created, changed or deleted until it responds again.',
        lastUpdateTime: '2026-01-01T12:00:00Z',
        lastTransitionTime: '2026-01-01T12:00:00Z',
      },
    ]);
  });

  test('names all clusters with an outage', () => {
    expect(during(control, target).at(-1)?.message).toMatch(
      /^API server of cluster "control".*; API server of cluster "target"/,
    );
  });

  test('is written once in an outage, however long it lasts', () => {
    expect(conditionsDuring([target], during(target), NOW + 3_600_000)).toBeUndefined();
  });

  test('keeps the time of its transition when a second cluster is lost', () => {
    const second = conditionsDuring([target, control], during(target), NOW + 60_000)?.at(-1);

    expect(second).toMatchObject({
      lastTransitionTime: '2026-01-01T12:00:00Z',
      lastUpdateTime: '2026-01-01T12:01:00Z',
    });
  });

  test('is removed when the outage is over', () => {
    expect(conditionsDuring([], during(target), NOW)).toEqual([available, frozen]);
    expect(conditionsDuring([], [available, frozen], NOW)).toBeUndefined();
  });
});

test('is written as a report, which passes while a cluster cannot be reached', async () => {
  const client = new MemoryClient();
  const deps = {
    machineDeployments: new MemoryInformer([machineDeployment()]),
    writer: client,
    clock: new FakeClock(),
  };
  const outage = { cluster: 'target', sinceMs: 0, why: 'no answer' };

  await showOutage(deps, 'default/deployment-1', [outage], new AbortController().signal);

  expect(client.writes).toMatchObject([{ intent: 'report', what: 'machinedeployments/deployment-1/status' }]);
});
