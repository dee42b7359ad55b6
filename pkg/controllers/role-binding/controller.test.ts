import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, machineDeployment, machineSet, secret } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { ROLE_BINDING_FINALIZER, SECRET_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { machines } from '../../kube/client/resource.ts';
import { silentLogger } from '../../base/log/logger.ts';
import { RoleBindingController, type RoleBindingDeps } from './controller.ts';

const OTHER = 'example.com/other';
const KEY = 'default/machinist-machines';
const signal = new AbortController().signal;

function binding(finalizers: string[], deletionTimestamp?: string): KubeObject {
  return {
    metadata: {
      name: 'machinist-machines',
      namespace: 'default',
      uid: 'uid-of-binding',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
  };
}

const GOING = binding([OTHER, ROLE_BINDING_FINALIZER], '2026-01-01T00:00:00Z');

/** The controller over one RoleBinding in a namespace with nothing else but what the caches are given. */
function world(of: KubeObject | undefined, caches: Partial<RoleBindingDeps> = {}) {
  const client = new MemoryClient();
  const controller = new RoleBindingController({
    roleBindings: new MemoryInformer(of === undefined ? [] : [of]),
    machines: new MemoryInformer([]),
    machineSets: new MemoryInformer([]),
    machineDeployments: new MemoryInformer([]),
    classes: new MemoryInformer([]),
    secrets: new MemoryInformer([]),
    reader: client,
    writer: client,
    namespace: 'default',
    log: silentLogger,
    ...caches,
  });
  return { client, controller, pass: () => controller.reconcile(KEY, signal) };
}

test('a RoleBinding that is being deleted goes when nothing is left, as it was looked at, and keeps what others hold it by', async () => {
  const { client, pass } = world(GOING);

  await pass();

  expect(client.writes).toMatchObject([
    {
      verb: 'patch',
      intent: 'change',
      what: 'rolebindings/machinist-machines',
      uid: 'uid-of-binding',
      resourceVersion: '7',
      body: { metadata: { finalizers: [OTHER] } },
    },
  ]);
});

describe('a RoleBinding that is being deleted is kept while there is', () => {
  const held = secret((s) => void (s.metadata.finalizers = [SECRET_FINALIZER]));
  test.each<{ what: string; caches: Partial<RoleBindingDeps> }>([
    { what: 'a MachineDeployment', caches: { machineDeployments: new MemoryInformer([machineDeployment()]) } },
    { what: 'a MachineSet', caches: { machineSets: new MemoryInformer([machineSet()]) } },
    { what: 'a Machine', caches: { machines: new MemoryInformer([machine()]) } },
    { what: 'a MachineClass', caches: { classes: new MemoryInformer([machineClass()]) } },
    { what: 'a Secret that we hold', caches: { secrets: new MemoryInformer([held]) } },
  ])('$what', async ({ caches }) => {
    const { client, pass } = world(GOING, caches);

    expect(await pass()).toMatchObject({
      kind: 'stop',
      waitingFor: expect.stringMatching(/^the last .* to be removed$/),
    });
    expect(client.writes).toEqual([]);
  });

  test('a Machine that no cache shows', async () => {
    const { client, pass } = world(GOING);
    client.put(machines, machine());

    expect(await pass()).toMatchObject({ kind: 'requeue' });
    expect(client.writes).toEqual([]);
  });
});

test.each([
  { title: 'with our finalizer', finalizers: [ROLE_BINDING_FINALIZER], isReleased: false },
  { title: 'of somebody else', finalizers: [OTHER], isReleased: true },
])('the RoleBinding of the manager is released while there is another $title: $isReleased', async (row) => {
  const other = binding(row.finalizers);
  const roleBindings = new MemoryInformer([
    GOING,
    { metadata: { ...other.metadata, name: 'machinist-cluster-api-machines', uid: 'another' } },
  ]);
  const { client, pass } = world(GOING, { roleBindings });

  const result = await pass();

  expect(client.writes).toHaveLength(row.isReleased ? 1 : 0);
  expect(result).toEqual(
    row.isReleased
      ? { kind: 'stop' }
      : { kind: 'stop', waitingFor: 'RoleBinding machinist-cluster-api-machines to be removed' },
  );
});

test('another RoleBinding is released before that of the manager', async () => {
  const other = { metadata: { ...GOING.metadata, name: 'machinist-cluster-api-machines', uid: 'another' } };
  const { client, controller } = world(GOING, { roleBindings: new MemoryInformer([GOING, other]) });

  await controller.reconcile('default/machinist-cluster-api-machines', signal);

  expect(client.writes.map(({ what }) => what)).toEqual(['rolebindings/machinist-cluster-api-machines']);
});

test('a Secret of somebody else keeps no RoleBinding', async () => {
  const { client, pass } = world(GOING, {
    secrets: new MemoryInformer([secret((s) => void (s.metadata.finalizers = [OTHER]))]),
  });

  await pass();

  expect(client.writes).toHaveLength(1);
});

test.each([
  { title: 'that is not being deleted', of: binding([ROLE_BINDING_FINALIZER]) },
  { title: 'without our finalizer', of: binding([OTHER], '2026-01-01T00:00:00Z') },
  { title: 'that is gone', of: undefined },
])('a RoleBinding $title is left alone', async ({ of }) => {
  const { client, pass } = world(of);

  expect(await pass()).toEqual({ kind: 'stop' });
  expect(client.writes).toEqual([]);
  expect(client.reads).toEqual([]);
});
