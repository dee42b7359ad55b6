import PQueue from 'p-queue';

import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import type { Api } from '../control-plane/api.ts';
import type { Measurement } from './measurement.ts';
import { timed } from './workload.ts';

/** Machines that are written about at once; one's writes come one after the other. */
const AT_ONCE = 50;
const NAMESPACE = 'ceiling';
const FINALIZER = 'example.com/ceiling';
const MACHINES = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${NAMESPACE}/machines`;
const NODES = '/api/v1/nodes';

/** A kind of object that is written, and what is written of it. */
interface Lane {
  readonly resource: string;
  readonly path: string;
  readonly body: (name: string) => object;
  /** A change of the object, the n-th. */
  readonly change: (n: number) => object;
  readonly status?: (n: number) => object;
}

const LANES: readonly Lane[] = [
  {
    resource: 'secrets',
    path: `/api/v1/namespaces/${NAMESPACE}/secrets`,
    body: (name) => ({ metadata: { name }, stringData: { token: name, description: 'x'.repeat(200) } }),
    change: (n) => ({ metadata: { annotations: { n: String(n) } } }),
  },
  {
    resource: 'machines',
    path: MACHINES,
    body: (name) => ({
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'Machine',
      metadata: { name, labels: { app: 'ceiling' }, finalizers: [FINALIZER] },
      spec: { class: { kind: 'MachineClass', name: 'none' } },
    }),
    // As the manager does: from the first change on nobody keeps track of fields.
    change: (n) => ({ metadata: { annotations: { n: String(n) }, managedFields: [{}] } }),
    status: (n) => ({
      currentStatus: { phase: n % 2 === 0 ? 'Pending' : 'Running', lastUpdateTime: toTimestamp(n * 1_000) },
      lastOperation: {
        type: 'Create',
        state: 'Processing',
        description: 'x'.repeat(80),
        lastUpdateTime: toTimestamp(n * 1_000),
      },
      machineConditions: ['VMCreated', 'NodeJoined', 'Healthy'].map((type) => ({
        type,
        status: 'True',
        reason: 'Ceiling',
        message: 'x'.repeat(60),
        lastTransitionTime: toTimestamp(n * 1_000),
      })),
    }),
  },
  {
    resource: 'nodes',
    path: NODES,
    body: (name) => ({ metadata: { name, finalizers: [FINALIZER] }, spec: { providerID: `ceiling:///${name}` } }),
    change: (n) => ({ metadata: { annotations: { n: String(n) } } }),
    status: (n) => ({
      conditions: [{ type: 'Ready', status: 'True', reason: 'Ceiling', lastHeartbeatTime: toTimestamp(n * 1_000) }],
    }),
  },
];

/**
 * Seconds in which the API server takes the writes of a measurement from a client that decides nothing and waits for nothing: as many of
 * each kind for each machine, about objects of the same size. What the scenario deletes without having made it is made before.
 */
export async function ceilingOf(api: Api, measurement: Measurement): Promise<number> {
  const { machines, requests } = measurement;
  const each = (key: string): number => Math.round((requests[key] ?? 0) / machines);
  await api.request('/api/v1/namespaces', { method: 'POST', body: { metadata: { name: NAMESPACE } } });
  const names = Array.from({ length: machines }, (_, i) => `ceiling-${i}`);
  const forAll = async (work: (name: string) => Promise<void>): Promise<void> => {
    await new PQueue({ concurrency: AT_ONCE }).addAll(names.map((name) => () => work(name)));
  };

  await forAll(async (name) => {
    for (const lane of LANES) {
      if (each(`POST ${lane.resource}`) > 0 || each(`DELETE ${lane.resource}`) === 0) continue;
      await api.send('POST', lane.path, lane.body(name));
      await api.send('PATCH', `${lane.path}/${name}`, lane.change(0));
    }
  });
  const seconds = await timed(() =>
    forAll(async (name) => {
      for (const lane of LANES) await write(api, lane, name, each);
      for (let n = each('POST events'); n > 0; n--)
        await api.send('POST', `/api/v1/namespaces/${NAMESPACE}/events`, eventOf(name));
    }),
  );
  await forAll(async (name) => {
    for (const { path } of LANES) {
      await api.request(`${path}/${name}`, { method: 'DELETE' });
      await release(api, path, name);
    }
  });
  return seconds;
}

/** The writes of one object, in the order of its life. */
async function write(api: Api, lane: Lane, name: string, each: (key: string) => number): Promise<void> {
  const { resource, path, body, change, status } = lane;
  const [made, deleted] = [each(`POST ${resource}`) > 0, each(`DELETE ${resource}`) > 0];
  const [changes, statuses] = [each(`PATCH ${resource}`), each(`PATCH ${resource}/status`)];
  if (!made && !deleted) return;
  if (made) await api.send('POST', path, body(name));
  for (let n = 1; n <= statuses; n++) await api.send('PATCH', `${path}/${name}/status`, { status: status?.(n) });
  for (let n = deleted ? 2 : 1; n <= changes; n++) await api.send('PATCH', `${path}/${name}`, change(n));
  if (!deleted) return;
  await api.send('DELETE', `${path}/${name}`);
  if (changes > 0) await release(api, path, name);
}

async function release(api: Api, path: string, name: string): Promise<void> {
  const contentType = 'application/merge-patch+json';
  await api.request(`${path}/${name}`, { method: 'PATCH', contentType, body: { metadata: { finalizers: null } } });
}

function eventOf(name: string): object {
  return {
    metadata: { generateName: `${name}.` },
    involvedObject: { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'Machine', namespace: NAMESPACE, name },
    type: 'Normal',
    reason: 'Ceiling',
    message: 'x'.repeat(60),
    source: { component: 'ceiling' },
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:00Z',
    count: 1,
  };
}
