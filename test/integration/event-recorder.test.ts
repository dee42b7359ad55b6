import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import type { Event } from '../../pkg/apis/wire.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { EventSubject } from '../../pkg/kube/events/correlator.ts';
import { EventRecorder } from '../../pkg/kube/events/recorder.ts';
import { OpenFence } from '../../pkg/kube/gate/fence.ts';
import { Outages } from '../../pkg/kube/gate/outages.ts';
import { CONTROL } from '../../pkg/kube/gate/gate.ts';
import { LeaderGate } from '../../pkg/kube/gate/leader-gate.ts';
import type { Writer } from '../../pkg/kube/client/client.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import { GatedWriter } from '../../pkg/kube/client/gated-writer.ts';
import { Transport } from '../../pkg/kube/client/transport.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { eventMetrics } from '../../pkg/base/metrics/events.ts';
import { gateMetrics } from '../../pkg/base/metrics/gate.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { adminEndpoint } from './kube-session.ts';

let writer: GatedWriter;
let transport: Transport;
const api = connect().api();

beforeAll(() => {
  const clock = new SystemClock();
  transport = new Transport({ endpoint: adminEndpoint(connect()), clock, userAgent: 'test' });
  const metrics = gateMetrics(new Registry());
  const outages = new Outages({ clock, log: silentLogger, metrics, periodMs: 60_000, timeoutMs: 30_000 });
  const gate = new LeaderGate({ clock, fence: new OpenFence({ clock }), outages, metrics, graceMs: 0 });
  writer = new GatedWriter({ transport, gate, cluster: CONTROL });
});

afterAll(async () => {
  await transport.close();
  await api.close();
});

function recorderOf(through: Pick<Writer, 'create' | 'patch'> = writer) {
  const clock = new FakeClock();
  const registry = new Registry();
  const warnings: unknown[] = [];
  const recorder = new EventRecorder({
    source: { component: 'machineset-controller' },
    writer: through,
    clock,
    log: { ...silentLogger, warn: (fields, message) => warnings.push({ ...fields, message }) },
    metrics: eventMetrics(registry),
  });
  return { recorder, clock, registry, warnings };
}

const subjectIn = (ns: string, name = 'set-1'): EventSubject => ({
  apiVersion: 'machine.sapcloud.io/v1alpha1',
  kind: 'MachineSet',
  namespace: ns,
  name,
  uid: `uid-${name}`,
});

async function eventsIn(ns: string): Promise<Event[]> {
  const { body } = await api.request(`/api/v1/namespaces/${ns}/events?limit=1000`);
  return (body as { items: Event[] }).items;
}

async function waitForCount(ns: string, count: number): Promise<Event> {
  return await eventually(async () => {
    const [event, ...more] = await eventsIn(ns);
    if (event?.count !== count || more.length > 0) throw new Error(`${event?.count} and ${more.length} more`);
    return event;
  });
}

const created = { type: 'Normal', reason: 'SuccessfulCreate', message: 'Created Machine' } as const;

describe('the event recorder', () => {
  test('writes equal occurrences as one Event with a rising count', async () => {
    await using ns = await namespace();
    const { recorder, clock } = recorderOf();
    const subject = subjectIn(ns.name);

    recorder.record({ subject, ...created });
    await waitForCount(ns.name, 1);
    clock.advance(60_000);
    recorder.record({ subject, ...created });
    recorder.record({ subject, ...created });
    const event = await waitForCount(ns.name, 3);

    expect(event).toMatchObject({
      type: 'Normal',
      reason: 'SuccessfulCreate',
      message: 'Created Machine',
      involvedObject: { ...subject },
      source: { component: 'machineset-controller' },
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:01:00Z',
    });
    await recorder.stop(1_000);
  });

  test('combines what differs only in its message, and names each of them', async () => {
    await using ns = await namespace();
    const { recorder } = recorderOf();

    for (let i = 0; i < 15; i++) {
      recorder.record({ subject: subjectIn(ns.name), type: 'Normal', reason: 'Tried', message: `try ${i}` });
    }
    await recorder.stop(10_000);
    const events = await eventsIn(ns.name);

    const combined = events.filter((event) => event.message?.startsWith('(combined'));
    expect(events).toHaveLength(11);
    expect(combined.map(({ message, count }) => ({ message, count }))).toEqual([
      { message: '(combined from similar events): try 10, 11, 12, 13, 14', count: 5 },
    ]);
  });

  test('makes an Event anew that the server has dropped, and goes on counting', async () => {
    await using ns = await namespace();
    const { recorder } = recorderOf();
    const subject = subjectIn(ns.name);
    recorder.record({ subject, ...created });
    const first = await waitForCount(ns.name, 1);
    await api.request(`/api/v1/namespaces/${ns.name}/events/${first.metadata.name}`, { method: 'DELETE' });

    recorder.record({ subject, ...created });
    const second = await waitForCount(ns.name, 2);

    expect(second.metadata.uid).not.toBe(first.metadata.uid);
    await recorder.stop(1_000);
  });

  test('tries again when the server does not answer, without writing an Event twice when only the answer was lost', async () => {
    await using ns = await namespace();
    let failures = 0;
    const { recorder, clock } = recorderOf({
      create: async (...args) => {
        failures += 1;
        if (failures === 1) throw new ApiError(0, 'Unreachable', 'cut');
        const object = await writer.create(...args);
        if (failures === 2) throw new ApiError(0, 'DeadlineExceeded', 'answer lost');
        return object;
      },
      patch: (...args) => writer.patch(...args),
    });
    recorder.record({ subject: subjectIn(ns.name), ...created });

    await eventually(async () => {
      clock.advance(10_000);
      return failures >= 3;
    });
    await recorder.stop(1_000);

    await waitForCount(ns.name, 1);
  });

  test('tells of all machines that one set creates in a burst', async () => {
    await using ns = await namespace();
    const { recorder, clock } = recorderOf();
    const machines = Array.from({ length: 300 }, (_, i) => `pool-7d9f5-${1_000 + i}`);

    for (const name of machines) {
      recorder.record({ subject: subjectIn(ns.name), ...created, message: `Created Machine ${name}` });
    }
    const events = await eventually(async () => {
      clock.advance(2_000);
      const written = await eventsIn(ns.name);
      expect(written.reduce((sum, { count = 0 }) => sum + count, 0)).toBe(300);
      return written;
    });
    await recorder.stop(1_000);

    const told = events.map(({ message }) => message).join('\n');
    expect(told.match(/pool-7d9f5-\d+/g)?.toSorted()).toEqual(machines);
    expect(events.length).toBeLessThan(25);
  });

  test('writes what waits before it stops: 300 objects at once', async () => {
    await using ns = await namespace();
    const { recorder, registry } = recorderOf();

    for (let i = 0; i < 300; i++) recorder.record({ subject: subjectIn(ns.name, `set-${i}`), ...created });
    await recorder.stop(20_000);

    expect(await eventsIn(ns.name)).toHaveLength(300);
    expect(await registry.metrics()).toContain('machinist_events_total{fate="written"} 300');
  });

  test('never grows without bound, and gives up what cannot be written in time', async () => {
    let sent = 0;
    const never = (): Promise<never> => {
      sent += 1;
      return new Promise(() => undefined);
    };
    const { recorder, registry, clock, warnings } = recorderOf({ create: never, patch: never });

    for (let i = 0; i < 12_000; i++) recorder.record({ subject: subjectIn('none', `set-${i}`), ...created });
    const stopping = recorder.stop(5_000);
    clock.advance(5_000);
    await stopping;

    const text = await registry.metrics();
    expect(text).toContain('machinist_events_total{fate="overflow"} 1996');
    expect(sent).toBe(32);
    expect(text).toContain(`machinist_events_total{fate="dropped"} ${12_000 - 1_996 - sent}`);
    expect(warnings).toEqual([
      { events: 12_000 - 1_996 - sent, message: 'dropped Events that were still queued at shutdown' },
    ]);
  });

  test('drops what the server refuses for good', async () => {
    await using ns = await namespace();
    const { recorder, registry } = recorderOf();
    const subject = { ...subjectIn(ns.name), namespace: 'no-such-namespace' };

    recorder.record({ subject, ...created });

    await eventually(async () => (await registry.metrics()).includes('machinist_events_total{fate="failed"} 1'));
    await recorder.stop(1_000);
  });
});
