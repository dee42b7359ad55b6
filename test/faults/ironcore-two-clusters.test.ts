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
const CHANGES = ['CreateMachine', 'DeleteMachine', 'UpdateMachinePower', 'AttachVolume', 'DetachVolume'] as const;

let first: ControlPlane;
let second: ControlPlane;
let apis: readonly [Api, Api];

beforeAll(async () => {
  first = await startControlPlane();
  second = await startControlPlane({ controllerManager: false });
  apis = [first.connection.api(), second.connection.api()];
  await applyManifests(apis[0], readManifests(path.join(ROOT, 'crds/ironcore')));
});

afterAll(async () => {
  for (const api of apis) await api.close();
  for (const plane of [first, second]) await plane.stop();
});

/*
 * A second cluster is made from a backup of the first, as for a trial of the backup, and its manager has the address of the first one's
 * runtime. All UIDs are the same. What the one switches on the other switches off, and what the one creates is, to the other, a machine whose
 * Machine is gone.
 */
// promise: ironcore/machines/copy-cluster-touches-nothing
test('a cluster that was made from a backup of another one touches nothing at the runtime of that, says so, and takes over only what it is told to', async () => {
  const ns = await namespace(first.connection);
  for (const role of ['ironcore-pools', 'ironcore-machines'] as const) await grant(apis[0], role, ns.name);
  await using runtime = await IriRuntime.start({ classes: { small: 10 } });
  const machinesPath = `${COMPUTE}/namespaces/${ns.name}/machines`;
  const start = async ({ connection }: ControlPlane): Promise<OperatorSession> =>
    await OperatorSession.start({
      connection,
      subject: { user: 'machinist' },
      namespace: ns.name,
      controllers: 'ironcore.pools',
      flags: { 'leader-elect': 'false', 'ironcore-pool': `pool=${runtime.address}` },
    });
  const make = async (name: string): Promise<void> => {
    const spec = { machineClassRef: { name: 'small' }, machinePoolRef: { name: 'pool' } };
    const body = { apiVersion: 'compute.ironcore.dev/v1alpha1', kind: 'Machine', metadata: { name }, spec };
    await apis[0].send('POST', machinesPath, body);
  };
  const shows = async (api: Api, name: string, want: object): Promise<void> =>
    await eventually(async () => {
      expect((await api.send<IronCoreMachine>('GET', `${machinesPath}/${name}`)).status).toMatchObject(want);
    }, PATIENCE);
  const isRunning = { state: 'Running' };
  const ready = (want: object) => ({
    conditions: expect.arrayContaining([expect.objectContaining({ type: 'Ready', ...want })]),
  });
  const poolShows = async (api: Api, want: object): Promise<void> =>
    await eventually(async () => {
      expect((await api.send<IronCoreMachinePool>('GET', `${COMPUTE}/machinepools/pool`)).status).toMatchObject(want);
    }, PATIENCE);
  const renewals = async (): Promise<string | undefined> => (await apis[0].send<Lease>('GET', LEASE)).spec?.renewTime;
  await apis[0].send('POST', `${COMPUTE}/machineclasses`, {
    apiVersion: 'compute.ironcore.dev/v1alpha1',
    kind: 'MachineClass',
    metadata: { name: 'small' },
    capabilities: { cpu: '1', memory: '1Gi' },
  });
  const original = await start(first);
  await make('old');
  await shows(apis[0], 'old', isRunning);
  await using backup = await Backup.take(first);
  const then = await renewals();
  await eventually(async () => expect(await renewals()).not.toBe(then), PATIENCE);
  await make('young');
  await shows(apis[0], 'young', isRunning);
  await backup.copyTo(second);
  const changesOf = (): number => CHANGES.map((method) => runtime.asked(method).length).reduce((a, b) => a + b);
  const before = changesOf();

  await using _copy = await start(second);
  const [, copy] = apis;
  await poolShows(copy, { state: 'Error', ...ready({ status: 'False', reason: 'ClaimedByAnother' }) });
  // Whatever is done in the copy, and whatever it allows.
  await copy.send('PATCH', `${machinesPath}/old`, { spec: { power: 'Off' } });
  const until = toTimestamp(new SystemClock().now() + 3_600_000);
  await copy.send('PATCH', `${COMPUTE}/machinepools/pool`, {
    metadata: { annotations: { [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: until } },
  });
  await shows(copy, 'old', { state: 'Running', ...ready({ status: 'Unknown', reason: 'ClaimedByAnother' }) });
  await copy.send('DELETE', `${machinesPath}/old`);
  await shows(copy, 'old', ready({ status: 'False', reason: 'ClaimedByAnother' }));
  const looks = runtime.asked('ListMachines').length;
  await eventually(() => expect(runtime.asked('ListMachines').length).toBeGreaterThan(looks + 8), PATIENCE);
  expect(changesOf()).toBe(before);
  await poolShows(apis[0], ready({ status: 'True' }));
  await shows(apis[0], 'old', isRunning);

  // The first one is gone, and the second one is to have the machines.
  await original[Symbol.asyncDispose]();
  await copy.send('PATCH', `${COMPUTE}/machinepools/pool`, {
    metadata: { annotations: { [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: null } },
  });
  await takeOver(copy, 'pool');

  await eventually(() => expect(runtime.store.all()).toHaveLength(1), PATIENCE);
  await poolShows(copy, ready({ status: 'True' }));
  expect(runtime.store.named('young')).toBeDefined();
  // The first one comes back: now it is the one that touches nothing.
  await make('late');
  const after = changesOf();
  await using _back = await start(first);
  await poolShows(apis[0], ready({ status: 'False', reason: 'ClaimedByAnother' }));
  await shows(apis[0], 'late', ready({ status: 'False', reason: 'ClaimedByAnother' }));
  expect(changesOf()).toBe(after);
}, 600_000);
