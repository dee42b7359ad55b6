import { describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { MACHINE_FINALIZER, NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine, MachineStatus } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

type Crds = 'own' | 'original';

/** A Machine under deletion as the original would have left it when its process ended. */
interface Leftover {
  readonly name: string;
  /** Absent: the phase of a Machine that nobody has begun to delete. */
  readonly phase?: string;
  /** Type, state and text of the last operation. */
  readonly said: readonly [type: string, state: string, description: string];
  /** What is gone already: the VM by the provider, the Node by the original. */
  readonly gone?: readonly ('vm' | 'node')[];
  readonly change?: (world: World) => Promise<void>;
  /** Reasons of our Events about it, from its takeover on. */
  readonly events: readonly string[];
}

const PROVIDER_ERROR = 'machine codes error: code = [Unavailable] message = [no route to [the] provider]';
const DELETED = ['Drained', 'VMDeleted'] as const;

const LEFTOVERS: readonly Leftover[] = [
  {
    name: 'running',
    phase: 'Running',
    said: ['Create', 'Successful', 'Machine m successfully joined'],
    events: DELETED,
  },
  {
    name: 'unknown',
    phase: 'Unknown',
    said: ['HealthCheck', 'Processing', 'Machine m is unhealthy - changing MachineState to Unknown'],
    events: DELETED,
  },
  {
    name: 'updating-in-place',
    phase: 'InPlaceUpdating',
    said: ['InPlaceUpdate', 'Processing', 'Node drain successful. Node is ready for update'],
    events: DELETED,
  },
  {
    name: 'marked-by-its-set',
    said: ['Delete', 'Processing', 'Deleting machine from cloud provider'],
    events: DELETED,
  },
  {
    name: 'never-created',
    phase: 'CrashLoopBackOff',
    said: ['Create', 'Failed', `Cloud provider message - ${PROVIDER_ERROR}`],
    gone: ['vm', 'node'],
    change: ({ forgetVM }) => forgetVM(),
    events: ['VMDeleted'],
  },
  {
    name: 'vm-status',
    said: ['Delete', 'Processing', 'Set machine status to termination. Now, getting VM Status'],
    events: DELETED,
  },
  {
    name: 'vm-status-without-label',
    said: ['Delete', 'Processing', 'Set machine status to termination. Now, getting VM Status'],
    change: ({ forgetNode }) => forgetNode(),
    // Its Node shows whose it is.
    events: ['Drained', 'NodeLabelCorrected', 'VMDeleted'],
  },
  {
    name: 'vm-status-failed',
    said: ['Delete', 'Failed', `${PROVIDER_ERROR} Set machine status to termination. Now, getting VM Status`],
    events: DELETED,
  },
  {
    name: 'no-vm-found',
    said: ['Delete', 'Processing', 'VM was not found at provider. Moving forward to node drain. Initiate node drain'],
    gone: ['vm', 'node'],
    events: ['VMDeleted'],
  },
  { name: 'drain', said: ['Delete', 'Processing', 'Initiate node drain'], events: DELETED },
  {
    name: 'drain-half-done',
    said: ['Delete', 'Processing', 'Initiate node drain'],
    change: ({ markNode }) => markNode(),
    events: DELETED,
  },
  {
    name: 'drain-failed',
    said: ['Delete', 'Failed', 'Drain failed due to - pods are left. Will retry in next sync. Initiate node drain'],
    events: DELETED,
  },
  {
    name: 'drained-by-force',
    said: ['Delete', 'Processing', 'Force Drain successful. Delete Volume Attachments'],
    change: ({ attach }) => attach(),
    events: ['VMDeleted'],
  },
  {
    name: 'drain-by-force-failed',
    said: [
      'Delete',
      'Processing',
      'Drain failed due to - x. However, since it is a force deletion shall continue deletion of VM. Delete Volume Attachments',
    ],
    events: ['VMDeleted'],
  },
  {
    name: 'delete-vm',
    said: ['Delete', 'Processing', 'Drain successful. Initiate VM deletion'],
    events: ['VMDeleted'],
  },
  {
    name: 'delete-vm-failed',
    said: ['Delete', 'Failed', `VM deletion failed due to - ${PROVIDER_ERROR}. Initiate VM deletion`],
    events: ['VMDeleted'],
  },
  {
    name: 'vm-gone-unseen',
    said: ['Delete', 'Processing', 'Drain successful. Initiate VM deletion'],
    gone: ['vm'],
    events: ['VMDeleted'],
  },
  {
    name: 'remove-node-finalizers', // a stage of v0.61 alone
    said: ['Delete', 'Processing', 'VM deletion was successful. Remove node finalizers'],
    gone: ['vm'],
    events: [],
  },
  {
    name: 'delete-node',
    said: ['Delete', 'Processing', 'VM deletion was successful. Initiate node object deletion'],
    gone: ['vm'],
    events: [],
  },
  {
    name: 'delete-node-failed',
    said: [
      'Delete',
      'Failed',
      'Deletion of Node Object m failed due to error: no answer. Initiate node object deletion',
    ],
    gone: ['vm'],
    events: [],
  },
  {
    name: 'release-finalizer',
    said: [
      'Delete',
      'Processing',
      'Deletion of Node Object m is successful. Initiate machine object finalizer removal',
    ],
    gone: ['vm', 'node'],
    events: [],
  },
];

const MACHINES = '/apis/machine.sapcloud.io/v1alpha1/namespaces';
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';
const LATER = { timeoutMs: 120_000, intervalMs: 100 };

/** What a row may do to one machine, while nobody manages it. */
interface World {
  readonly forgetVM: () => Promise<void>;
  readonly forgetNode: () => Promise<void>;
  readonly markNode: () => Promise<void>;
  readonly attach: () => Promise<void>;
}

describe('a deletion that the original has begun', () => {
  test.concurrent.each<{ crds: Crds }>([{ crds: 'own' }, { crds: 'original' }])(
    'is taken over and finished, whatever it had come to, under the $crds definitions',
    async ({ crds }) => {
      await using site = await Site.drawn({ crds });
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 0 });
      const { api } = site;
      const machines = `${MACHINES}/${pool.namespace}/machines`;
      const before = await InProcessManager.start(pool.access);
      for (const { name } of LEFTOVERS) await api.send('POST', machines, manifestOf(`${crds}-${name}`));
      await eventually(async () => {
        const phases = (await pool.machines()).map(({ status }) => status?.currentStatus?.phase);
        expect(phases).toEqual(LEFTOVERS.map(() => 'Running'));
      }, LATER);
      await before.terminate();
      await forgetEvents(api, pool.namespace);
      for (const leftover of LEFTOVERS) await leave(api, cloud, machines, crds, leftover);

      await using manager = await InProcessManager.start(pool.access);
      await eventually(async () => expect(await standing(pool)).toEqual([]), LATER);
      await pool.delete();
      await pool.untilGone();

      expect(cloud.doubled.size).toBe(0);
      expect(cloud.created).toHaveLength(LEFTOVERS.length);
      const told = await toldOf(api, pool.namespace, crds, LEFTOVERS.flatMap(({ events }) => events).length);
      expect(told).toEqual(Object.fromEntries(LEFTOVERS.map(({ name, events }) => [name, [...events]])));
      expect(await namesIn(api, ATTACHMENTS)).toEqual(['elsewhere']);
      expect(manager.identity).not.toBe(before.identity);
    },
    180_000,
  );
});

function manifestOf(name: string): unknown {
  return {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'Machine',
    metadata: { name, finalizers: [MACHINE_FINALIZER] },
    spec: { class: { kind: 'MachineClass', name: 'pool' } },
  };
}

/** Makes the world of one machine what the row says, and asks for its deletion. */
async function leave(
  api: Api,
  cloud: SimulatedCloud,
  machines: string,
  crds: Crds,
  { name: row, phase = 'Terminating', said, gone = [], change }: Leftover,
): Promise<void> {
  const name = `${crds}-${row}`;
  const path = `${machines}/${name}`;
  const { spec } = await api.send<Machine>('GET', path);
  if (gone.includes('vm')) cloud.simulation.cloud.remove(spec.providerID ?? '', 'deleted');
  if (gone.includes('node')) await removeNode(api, name);
  await change?.({
    async forgetVM() {
      // Only a machine that is still being created may lose its provider id.
      await patch(api, `${path}/status`, { status: { currentStatus: { phase: '' } } });
      await patch(api, path, { metadata: { labels: { [NODE_LABEL]: null } }, spec: { providerID: null } });
    },
    forgetNode: () => patch(api, path, { metadata: { labels: { [NODE_LABEL]: null } } }),
    async markNode() {
      await patch(api, `/api/v1/nodes/${name}`, { spec: { unschedulable: true } });
      const { status } = await api.send<Node>('GET', `/api/v1/nodes/${name}`);
      const condition = { type: 'Terminating', status: 'True', reason: 'ScaleDown', message: 'Machine is terminating' };
      await patch(api, `/api/v1/nodes/${name}/status`, {
        status: { conditions: [...(status?.conditions ?? []), condition] },
      });
    },
    async attach() {
      await api.send('POST', ATTACHMENTS, attachment('here', name));
      await api.send('POST', ATTACHMENTS, attachment('elsewhere', 'another-node'));
    },
  });
  const now = '2026-01-01T00:00:00Z';
  const [type, state, description] = said;
  const status = {
    currentStatus: { phase, lastUpdateTime: now, timeoutActive: false },
    lastOperation: { type, state, description, lastUpdateTime: now },
    machineConditions: null, // the original's PUTs erase what it does not know
  } as unknown as MachineStatus;
  await patch(api, `${path}/status`, { status });
  await api.send('DELETE', path);
}

function attachment(name: string, nodeName: string): unknown {
  return { metadata: { name }, spec: { attacher: 'csi.example', nodeName, source: { persistentVolumeName: name } } };
}

/** Nodes are held by a finalizer of ours; the original takes it off before it deletes one. */
async function removeNode(api: Api, name: string): Promise<void> {
  await patch(api, `/api/v1/nodes/${name}`, { metadata: { finalizers: null } });
  await api.send('DELETE', `/api/v1/nodes/${name}`);
}

/** Machines that are still there, and how far they are. */
async function standing(pool: Pool): Promise<unknown[]> {
  const all = await pool.machines();
  return all.map(({ metadata, status }) => [metadata.name, status?.lastOperation?.description]);
}

async function forgetEvents(api: Api, namespace: string): Promise<void> {
  await api.send('DELETE', `/api/v1/namespaces/${namespace}/events`);
}

/** Reasons of the Events about each machine, by its row, once there are so many. */
async function toldOf(
  api: Api,
  namespace: string,
  crds: Crds,
  count: number,
): Promise<Record<string, readonly string[]>> {
  interface Told {
    readonly involvedObject: { readonly kind: string; readonly name: string };
    readonly reason: string;
  }
  return await eventually(async () => {
    const { items } = await api.send<{ items: Told[] }>('GET', `/api/v1/namespaces/${namespace}/events`);
    const about = items.filter(({ involvedObject: { kind } }) => kind === 'Machine');
    if (about.length < count) throw new Error(`${about.length} of ${count} Events`);
    const rows = LEFTOVERS.map(({ name }): [string, string[]] => {
      const own = about.filter(({ involvedObject }) => involvedObject.name === `${crds}-${name}`);
      return [name, own.map(({ reason }) => reason).toSorted()];
    });
    return Object.fromEntries(rows);
  }, LATER);
}

async function namesIn(api: Api, path: string): Promise<string[]> {
  const { items } = await api.send<{ items: { metadata: { name: string } }[] }>('GET', path);
  return items.map(({ metadata }) => metadata.name);
}

async function patch(api: Api, path: string, body: unknown): Promise<void> {
  await api.send('PATCH', path, body);
}
