import { expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { DELETION_HOOK } from '../api/keys.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { DriverError } from '../../../driver/error.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { apiVersionOf, customResourceDefinitions, providerResource, secrets } from '../../../kube/client/resource.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { ClusterAPIDriver } from './driver.ts';
import { marked } from './marks.ts';
import { userDataSecretName } from './objects.ts';

const GROUP = 'infrastructure.cluster.x-k8s.io';
const { name: MACHINE, namespace, uid } = machine().metadata;
const REQUEST = {
  machine: machine((m) => delete m.spec.providerID),
  machineClass: machineClass((c) =>
    Object.assign(c, {
      providerSpec: { infrastructureRef: { apiGroup: GROUP, kind: 'SimMachineTemplate', name: 't' } },
    }),
  ),
  secretData: {},
};
const CALL = { signal: new AbortController().signal, timeoutMs: 1, fencingToken: 1n, cluster: 'c' };

const named = (name: string, more: object = {}): KubeObject => ({
  metadata: { name, namespace, uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: '', ...more },
});
/** Made for the machine. */
const made = (name: string): KubeObject => {
  const className = REQUEST.machineClass.metadata.name;
  return named(name, marked({ cluster: 'c', className, machineName: MACHINE, machineUID: uid }));
};
const driverOf = (client: MemoryClient): ClusterAPIDriver =>
  new ClusterAPIDriver({
    reader: client,
    writer: client,
    servedAs: apiVersionOf,
    clock: new FakeClock(),
    log: silentLogger,
    close: () => Promise.resolve(),
  });

test('a deletion that the API server refuses without an end is asked for once a call', async () => {
  const client = new MemoryClient();
  client.put(secrets, made(userDataSecretName(MACHINE)));
  client.failures.push(new ApiError(409, 'Conflict', 'a webhook says no'));

  await expect(driverOf(client).deleteMachine(REQUEST, CALL)).rejects.toMatchObject({ code: 'Aborted' });
  expect(client.writes).toHaveLength(1);
});

test.each([
  { what: 'of which nothing was left', isLast: false, answer: { code: 'NotFound' } },
  { what: 'the last of which was deleted just then', isLast: true, answer: { lastKnownState: undefined } },
])(
  'that a machine $what is gone is said by nobody who may not list any more what may be',
  async ({ isLast, answer }) => {
    const client = new MemoryClient();
    const putLast = (): void => {
      if (isLast) client.put(secrets, made(userDataSecretName(MACHINE)));
    };
    putLast();
    const labels = { 'cluster.x-k8s.io/v1beta2': 'v1beta1' };
    client.put(customResourceDefinitions, named(`others.${GROUP}`, { namespace: '', labels }));
    const driver = driverOf(client);
    const ask = async (): Promise<unknown> => await driver.deleteMachine(REQUEST, CALL).catch((err: unknown) => err);
    expect(await ask()).toMatchObject(answer);
    putLast();

    const list = client.list.bind(client);
    client.list = (resource) =>
      resource.plural === 'others' ? Promise.reject(new ApiError(403, 'Forbidden', 'no')) : list(resource);

    expect(await ask()).toMatchObject({
      code: 'PermissionDenied',
      detail: expect.stringContaining(`no longer permitted to list others.${GROUP}`),
    });
  },
);

test('a deletion of several calls ends with success, also in another process; that nothing is left of another machine does not', async () => {
  const client = new MemoryClient();
  client.put(clusterAPIMachines, { metadata: { ...made(MACHINE).metadata, ...GOING } });
  const going = (await driverOf(client)
    .deleteMachine(REQUEST, CALL)
    .catch((err: unknown) => err)) as DriverError;
  expect(going).toMatchObject({ code: 'Aborted', lastKnownState: expect.stringContaining(uid) });

  const ask = async (lastKnownState: string | undefined): Promise<unknown> => {
    const { status } = REQUEST.machine;
    const request = { ...REQUEST, machine: { ...REQUEST.machine, status: { ...status, lastKnownState } } };
    return await driverOf(new MemoryClient()).deleteMachine(request, CALL);
  };
  expect(await ask(going.lastKnownState)).toEqual({ lastKnownState: undefined });
  await expect(ask(undefined)).rejects.toMatchObject({ code: 'NotFound' });
  await expect(ask(going.lastKnownState?.replace(uid, 'another'))).rejects.toMatchObject({ code: 'NotFound' });
});

/** A Machine of ours that our hook holds. */
const held = (more: object = {}): KubeObject => {
  const { metadata } = made(MACHINE);
  return { metadata: { ...metadata, ...more, annotations: { ...metadata.annotations, [DELETION_HOOK]: '' } } };
};
const GOING = { deletionTimestamp: '2026-01-01T00:00:00Z' };

test('our hook goes before the Machine, so that whoever looks after it is not held', async () => {
  const client = new MemoryClient();
  client.put(clusterAPIMachines, held());

  await driverOf(client).deleteMachine(REQUEST, CALL);

  expect(client.writes).toMatchObject([
    { verb: 'patch', uid: `uid-of-${MACHINE}`, body: { metadata: { annotations: { [DELETION_HOOK]: null } } } },
    { verb: 'delete', uid: `uid-of-${MACHINE}` },
  ]);
});

test('a hook that comes back each time is told of once a call', async () => {
  const client = new MemoryClient();
  client.put(clusterAPIMachines, held());
  client.failures.push(new ApiError(409, 'Conflict', 'a webhook says no'));

  await expect(driverOf(client).deleteMachine(REQUEST, CALL)).rejects.toMatchObject({
    code: 'Aborted',
    detail: expect.stringContaining(`held by annotation ${DELETION_HOOK}`),
  });
  expect(client.writes).toHaveLength(1);
});

test('a Machine that somebody deletes is listed so, as long as our hook holds it', async () => {
  const client = new MemoryClient();
  const listed = async (): Promise<unknown> => (await driverOf(client).listMachines(REQUEST, CALL))[0]?.deletion;
  client.put(clusterAPIMachines, held());
  expect(await listed()).toBeUndefined();

  client.put(clusterAPIMachines, held(GOING));
  expect(await listed()).toBe(
    `Machine ${MACHINE} of Cluster API is being deleted, but is held by annotation ${DELETION_HOOK}`,
  );

  const { metadata } = made(MACHINE);
  client.put(clusterAPIMachines, { metadata: { ...metadata, ...GOING } });
  expect(await listed()).toBeUndefined();
});

test.each([
  { what: 'that was deleted before it had a VM is let go, and made anew', providerID: '', writes: 1 },
  { what: 'that was deleted when it had a VM is kept', providerID: 'sim:///1', writes: 0 },
])('a Machine $what', async ({ providerID, writes }) => {
  const client = new MemoryClient();
  client.put(clusterAPIMachines, { ...held(GOING), spec: { providerID } } as KubeObject);
  const whole = {
    ...REQUEST.machineClass,
    providerSpec: {
      clusterName: 'c',
      infrastructureRef: { apiGroup: GROUP, kind: 'SimMachineTemplate', name: 't' },
      bootstrap: { dataSecretName: 's' },
    },
  };

  await expect(driverOf(client).createMachine({ ...REQUEST, machineClass: whole }, CALL)).rejects.toMatchObject({
    code: 'Aborted',
  });
  expect(client.writes).toHaveLength(writes);
});

test('without the Secret that the class names nothing is made, and who named it is told', async () => {
  const client = new MemoryClient();
  client.put(clusterAPIClusters, named('c'));
  const naming = {
    ...REQUEST.machineClass,
    providerSpec: {
      clusterName: 'c',
      infrastructureRef: { apiGroup: GROUP, kind: 'SimMachineTemplate', name: 't' },
      bootstrap: { dataSecretName: 'given' },
    },
  };
  const create = async (): Promise<unknown> =>
    await driverOf(client).createMachine({ ...REQUEST, machineClass: naming }, CALL);

  await expect(create()).rejects.toMatchObject({
    code: 'InvalidArgument',
    detail:
      `providerSpec.bootstrap.dataSecretName: Secret given does not exist in namespace ${namespace}: ` +
      'create it, with the bootstrap data under key value, or correct the name',
  });
  client.put(secrets, named('given'));
  // The next thing that is missing.
  await expect(create()).rejects.toMatchObject({ detail: expect.stringContaining('providerSpec.infrastructureRef') });
  expect(client.writes).toEqual([]);
});

test.each([
  { what: 'is told once its Machine is gone', isThere: false },
  { what: 'is not told before its Machine has taken it over', isThere: true },
])('the provider ID of infrastructure $what', async ({ isThere }) => {
  const client = new MemoryClient();
  const resource = providerResource({ group: GROUP, version: 'v1', plural: 'simmachines', kind: 'SimMachine' });
  const labels = { 'cluster.x-k8s.io/v1beta2': 'v1' };
  client.put(customResourceDefinitions, {
    metadata: { ...named(`simmachines.${GROUP}`, { labels }).metadata, namespace: '' },
  });
  client.put(resource, { ...made(MACHINE), spec: { providerID: 'sim:///1' } } as KubeObject);
  if (isThere) client.put(clusterAPIMachines, made(MACHINE));

  const [told] = await Promise.allSettled([driverOf(client).getMachineStatus(REQUEST, CALL)]);

  expect(told).toMatchObject(
    isThere ? { reason: { code: 'Uninitialized' } } : { value: { providerID: 'sim:///1', nodeName: MACHINE } },
  );
});
