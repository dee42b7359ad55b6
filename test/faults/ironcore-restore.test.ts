import path from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import { type ControlPlane, startControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { IronCoreMachine } from '../../pkg/worlds/ironcore/api/machine.ts';
import type { IronCoreMachinePool } from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../pkg/apis/wire.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { IriRuntime } from '../../packages/providers/iri/runtime.ts';
import { Backup } from '../cloud/backup.ts';
import { takeOver } from '../cloud/take-over.ts';
import { namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { OperatorSession } from '../integration/operator-session.ts';
import { grant } from '../integration/shipped-roles.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const COMPUTE = '/apis/compute.ironcore.dev/v1alpha1';
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/ironcore-machinepool-lease/leases/pool';
const PATIENCE = { timeoutMs: 120_000 };

let plane: ControlPlane;
let api: Api;

beforeAll(async () => {
  plane = await startControlPlane();
  api = plane.connection.api();
  await applyManifests(api, readManifests(path.join(ROOT, 'crds/ironcore')));
});

afterAll(async () => {
  await api.close();
  await plane.stop();
});

async function createVolume(at: string, name: string): Promise<void> {
  await api.send('POST', at, {
    apiVersion: 'storage.ironcore.dev/v1alpha1',
    kind: 'Volume',
    metadata: { name },
    spec: { resources: { storage: '1Gi' } },
  });
  const status = { state: 'Available', access: { driver: 'ceph', handle: 'h' } };
  await api.send('PATCH', `${at}/${name}/status`, { status });
}

/*
 * etcd is set back while nobody serves the pool. Whoever serves it next has never heard of the Machines that were made since the backup,
 * and finds their machines at the runtime, healthy and without a Machine.
 */
// promise: machines-ironcore/healthy-machine-ironcore-whose
// promise: ironcore/machines/whose-machine-restore-cluster
test('machines whose Machines a restore has forgotten are kept by a process that has never seen them, and told, until somebody allows their deletion', async () => {
  const ns = await namespace(plane.connection);
  for (const role of ['ironcore-pools', 'ironcore-machines'] as const) await grant(api, role, ns.name);
  await using runtime = await IriRuntime.start({ classes: { small: 10 } });
  const start = async (): Promise<OperatorSession> =>
    await OperatorSession.start({
      connection: plane.connection,
      subject: { user: 'machinist' },
      namespace: ns.name,
      controllers: 'ironcore.pools',
      flags: { 'leader-elect': 'false', 'ironcore-pool': `pool=${runtime.address}` },
    });
  const create = async (kind: string, at: string, name: string, more: object): Promise<void> => {
    await api.send('POST', at, { apiVersion: 'compute.ironcore.dev/v1alpha1', kind, metadata: { name }, ...more });
  };
  const machinesPath = `${COMPUTE}/namespaces/${ns.name}/machines`;
  const make = async (name: string, ...volumes: readonly object[]): Promise<void> =>
    await create('Machine', machinesPath, name, {
      spec: { machineClassRef: { name: 'small' }, machinePoolRef: { name: 'pool' }, volumes },
    });
  const shows = async (name: string, want: object): Promise<void> =>
    await eventually(async () => {
      const { status } = await api.send<IronCoreMachine>('GET', `${machinesPath}/${name}`);
      expect(status).toMatchObject(want);
    }, PATIENCE);
  const isRunning = { state: 'Running' };
  const data = { name: 'data', volumeRef: { name: 'data' } };
  const keptCondition = async () => {
    const { status } = await api.send<IronCoreMachinePool>('GET', `${COMPUTE}/machinepools/pool`);
    return status?.conditions?.find(({ type }) => type === 'MachinesKept');
  };
  await create('MachineClass', `${COMPUTE}/machineclasses`, 'small', { capabilities: { cpu: '1', memory: '1Gi' } });
  const before = await start();
  await createVolume(`/apis/storage.ironcore.dev/v1alpha1/namespaces/${ns.name}/volumes`, 'data');
  await make('old');
  await shows('old', isRunning);
  await using backup = await Backup.take(plane);
  // What a backup does not know of who serves a pool is ten seconds of it at most.
  const renewedAt = async () => (await api.send<Lease>('GET', LEASE)).spec?.renewTime;
  const then = await renewedAt();
  await eventually(async () => expect(await renewedAt()).not.toBe(then), PATIENCE);
  await make('young-1', data);
  await make('young-2');
  await shows('young-1', isRunning);
  await shows('young-2', isRunning);
  await before[Symbol.asyncDispose]();

  await backup.restore();
  const young = ['young-1', 'young-2'].map((name) => runtime.store.named(name).metadata.id);
  await using _after = await start();

  // It could be a copy of the cluster, while the one that was copied goes on.
  await takeOver(api, 'pool');
  await eventually(async () => {
    expect(await keptCondition()).toMatchObject({ status: 'True', reason: 'DeletionNotSeen' });
  }, PATIENCE);
  expect(runtime.asked('DeleteMachine')).toEqual([]);
  const { message } = (await keptCondition()) ?? { message: '' };
  for (const id of young) expect(message).toContain(id);
  // Its claim is forgotten, too: that it looks free must not have it attached twice.
  await make('heir', data);
  const why = `Volume data is in use by machine ${young[0]} at the runtime`;
  await shows('heir', {
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: 'Ready', message: expect.stringContaining(why) }),
    ]),
  });
  expect(runtime.store.all()).toHaveLength(3);

  const annotations = { [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: toTimestamp(new SystemClock().now() + 3_600_000) };
  await api.send('PATCH', `${COMPUTE}/machinepools/pool`, { metadata: { annotations } });

  await shows('heir', isRunning);
  await eventually(() => expect(runtime.store.all()).toHaveLength(2), PATIENCE);
  expect(runtime.asked('DeleteMachine')).toHaveLength(2);
  expect(runtime.store.named('old')).toBeDefined();
  await eventually(async () => expect(await keptCondition()).toMatchObject({ status: 'False' }), PATIENCE);
}, 400_000);
