import { describe, expect, test } from '@jest/globals';

import type { Lease } from '../apis/wire.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import type { EventSubject, Occurrence } from '../kube/events/correlator.ts';
import type { OutageChangeListener } from '../kube/gate/outages.ts';
import type { Outage } from '../kube/gate/outage.ts';
import { OutageReports } from './outage-reports.ts';

const SINCE = Date.UTC(2026, 0, 1);
// What an Event about it needs of a Lease.
const lease = { metadata: { name: 'machine-controller', namespace: 'ns', uid: 'u' } } as Lease;

function start(subject?: EventSubject) {
  const clock = new FakeClock();
  const outages: Outage[] = [];
  const listeners: OutageChangeListener[] = [];
  const reports = new OutageReports({
    clock,
    subject,
    outages: {
      current: () => outages,
      onChange(listener) {
        listeners.push(listener);
        return () => undefined;
      },
    },
  });
  const told: Occurrence[] = [];
  const elector: { lease: Lease | undefined; isSuspended: boolean } = { lease: undefined, isSuspended: false };
  const recorder = { record: (occurrence: Occurrence) => void told.push(occurrence) };
  const lead = (): void => {
    elector.lease = lease;
    reports.subscribe({ elector, recorder });
  };
  const change = (cluster: string, isOver: boolean, lastedMs = 30_000, more: Partial<Outage> = {}): void => {
    const outage = { cluster, sinceMs: SINCE, why: 'connection refused', ...more };
    outages.splice(0, outages.length, ...(isOver ? [] : [outage]));
    for (const listener of listeners) listener({ ...outage, isOver, lastedMs });
  };
  return { clock, told, elector, lead, change };
}

describe('outages', () => {
  test('of a target are told on the Lease when they begin and when they end', () => {
    const { told, lead, change } = start();
    lead();

    change('target', false);
    change('target', true, 725_000);

    expect(told).toMatchObject([
      {
        subject: { kind: 'Lease', namespace: 'ns', name: 'machine-controller', uid: 'u' },
        type: 'Warning',
        reason: 'APIServerUnreachable',
        message:
          'API server of cluster "target" unreachable since 2026-01-01T00:00:00Z (connection refused): ' +
          'no object or VM of this cluster is created, changed or deleted until it responds again.',
      },
      {
        type: 'Normal',
        reason: 'APIServerReachable',
        message:
          'API server responds again after 12 min 5 s; ' +
          'API server of cluster "target" unreachable since 2026-01-01T00:00:00Z (connection refused).',
      },
    ]);
  });

  test('of the control cluster are reported on the Lease that was held before, when it suspended leadership', () => {
    const { told, elector, lead, change } = start();
    lead();
    change('control', false);
    Object.assign(elector, { lease: undefined, isSuspended: true });
    change('control', true);

    expect(told).toMatchObject([{ subject: { kind: 'Lease', uid: 'u' }, reason: 'APIServerReachable' }]);
  });

  test('are reported on the Lease as it was held last, and nowhere while none was', () => {
    const { told, elector, lead, change } = start();
    lead();
    elector.lease = { metadata: { ...lease.metadata, uid: 'made again' } };
    change('target', false);
    Object.assign(elector, { lease: undefined, isSuspended: true });
    change('target', true);

    expect(told.map(({ subject }) => subject.uid)).toEqual(['made again', 'made again']);
  });

  test('of the control cluster are told when they end, by whoever leads then or soon after', () => {
    const { clock, told, lead, change } = start();

    change('control', false);
    change('control', true);
    clock.advance(60_000);
    lead();

    expect(told.map(({ reason }) => reason)).toEqual(['APIServerReachable']);
  });

  test('in which a cluster was set back are told at both ends, of the control cluster too', () => {
    const { told, lead, change } = start();
    lead();
    const setBack = { isSetBack: true, why: 'machines are at 20, and were at 40' } as const;

    change('control', false, 0, setBack);
    change('control', true, 3_000, setBack);

    expect(told).toMatchObject([
      {
        type: 'Warning',
        reason: 'ClusterSetBack',
        message:
          'Cluster "control" was restored to an earlier state, detected at 2026-01-01T00:00:00Z (machines are at 20, and were at 40): ' +
          'no object or VM of this cluster is created, changed or deleted until the cluster has been read completely.',
      },
      {
        type: 'Normal',
        reason: 'ClusterReadAgain',
        message:
          'The cluster was read completely after 3 s; ' +
          'Cluster "control" was restored to an earlier state, detected at 2026-01-01T00:00:00Z (machines are at 20, and were at 40).',
      },
    ]);
  });

  test('that go on are told by a new leader, those long past are not', () => {
    const { clock, told, lead, change } = start();
    change('control', false);
    change('control', true);
    clock.advance(6 * 60_000);
    change('target', false);

    lead();

    expect(told.map(({ reason }) => reason)).toEqual(['APIServerUnreachable']);
  });

  test('are told once on what stands in place of the Leases, by whichever leadership', () => {
    const { told, lead, change } = start({ kind: 'Namespace', name: 'ns', uid: 'n' } as EventSubject);
    lead();
    lead();

    change('target', false);

    expect(told).toMatchObject([{ subject: { kind: 'Namespace', uid: 'n' }, reason: 'APIServerUnreachable' }]);
  });

  test('are told on the Lease of each leadership', () => {
    const { told, lead, change } = start();
    lead();
    lead();

    change('target', false);

    expect(told.map(({ subject }) => subject.kind)).toEqual(['Lease', 'Lease']);
  });

  test('are not told by a process that does not lead', () => {
    const { told, elector, lead, change } = start();
    change('target', false);
    lead();
    elector.lease = undefined;

    change('target', true);

    expect(told).toHaveLength(1);
  });
});
