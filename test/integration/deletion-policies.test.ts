import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import {
  DELETION_POLICY_ANNOTATION,
  DELETION_POLICY_IN_FORCE_ANNOTATION,
  FORCED_REMOVAL_PREFIX,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import type { DeletionPolicy } from '../../pkg/controllers/machine-facts/deletion-policy.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { events, machineClasses, machines, nodes } from '../../pkg/kube/client/resource.ts';
import { Workload } from '../cloud/workload.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };

let api: Api;
let world: MachineWorld;
let workload: Workload;

beforeAll(async () => {
  world = await MachineWorld.open({
    controllers: 'machine,machine-class,secret,safety.orphan-vms,safety.unmanaged-nodes',
    flags: {
      'forced-deletion-timeout': '2s',
      'machine-safety-orphan-vms-period': '1s',
      'machine-safety-orphan-vms-grace': '1s',
    },
  });
  api = world.connection.api();
  workload = await Workload.open(api, world.namespace);
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await api.close();
});

/** A Running machine with two pods on its Node. */
async function occupied(policy: DeletionPolicy, drainTimeout = '5m'): Promise<string> {
  const name = await world.create((m) => {
    m.metadata.annotations = { [DELETION_POLICY_ANNOTATION]: policy };
    Object.assign(m.spec, { drainTimeout, maxEvictRetries: 0 });
  });
  await world.settled(name);
  for (let i = 0; i < 2; i++) await workload.pod(name);
  await eventually(async () => (await podsOn(name)).every(({ status }) => status?.phase === 'Running'), PATIENCE);
  return name;
}

async function podsOn(name: string): ReturnType<Workload['pods']> {
  return (await workload.pods()).filter(({ spec }) => spec?.nodeName === name);
}

/** Whether the provider still has the VM of this machine. */
function hasVM(name: string): boolean {
  return world.cloud.cloud.all().some(({ machineName }) => machineName === name);
}

async function weaken(name: string, policy: DeletionPolicy): Promise<void> {
  const change = { metadata: { annotations: { [DELETION_POLICY_ANNOTATION]: policy } } };
  const patch = mergePatch(await world.read(name), change);
  await world.user.writer.patch('change', machines, { namespace: world.namespace, name }, patch);
}

describe('deletion policies', () => {
  // promise: deletion-policies/graceful-eviction-ends-vm
  // promise: openstack/deletion/graceful-evictions-end-vm
  test('graceful: every pod is evicted before the VM is deleted', async () => {
    const name = await occupied('graceful');
    world.takeRequests();

    await world.delete(name);
    await world.gone(name);

    const sent = world.takeRequests();
    // The stage before DeleteMachine is the last that is written.
    const stage = sent.lastIndexOf('patch machines/status 200');
    expect(sent.filter((one) => one.startsWith('create pods/eviction'))).toHaveLength(2);
    expect(sent.findLastIndex((one) => one.startsWith('create pods/eviction'))).toBeLessThan(stage);
    expect(sent.filter((one) => one.startsWith('delete pods'))).toEqual([]);
    expect(hasVM(name)).toBe(false);
  });

  // promise: deletion-policies/graceful-vm-pods-stay
  // promise: openstack/deletion/blocked-budget-vm-stays
  test('graceful, then unsafe: a budget keeps VM and pods past the drain timeout, until the policy is weakened', async () => {
    const name = await occupied('graceful', '2s');
    await workload.forbidEvictions(2);
    world.takeRequests();

    await world.delete(name);
    await eventually(
      async () => {
        const { status, metadata } = await world.read(name);
        expect(status?.lastOperation).toMatchObject({ type: 'Delete', state: 'Failed' });
        expect(status?.lastOperation?.description).toContain('does not allow deleting pods');
        expect(metadata.annotations?.[DELETION_POLICY_IN_FORCE_ANNOTATION]).toBe('graceful');
      },
      { ...PATIENCE, describe: 'the drain to count as failed' },
    );
    expect(hasVM(name)).toBe(true);
    expect(await podsOn(name)).toHaveLength(2);
    await weaken(name, 'unsafe');
    await world.gone(name);

    expect(world.takeRequests().filter((one) => one.startsWith('delete pods'))).toEqual([]);
    expect(hasVM(name)).toBe(false);
  });

  // promise: deletion-policies/unsafe-eviction-cordon
  // promise: openstack/deletion/unsafe-eviction-cordon
  test('unsafe: no eviction, no cordon', async () => {
    const name = await occupied('unsafe');
    const unschedulable: boolean[] = [];
    const note = (_old: Node | undefined, node: Node | undefined): void => {
      if (node?.metadata.name === name) unschedulable.push(node.spec?.unschedulable === true);
    };
    world.session.nodes?.onChange(note);
    world.takeRequests();

    await world.delete(name);
    await world.gone(name);

    const sent = world.takeRequests();
    expect(sent.filter((one) => /pods|volumeattachments|nodes\/status/.test(one))).toEqual([]);
    expect(unschedulable).not.toContain(true);
    expect(hasVM(name)).toBe(false);
  });

  // promise: deletion-policies/forced-machine-goes-provider
  // promise: openstack/deletion/forced-machine-goes-event
  test('forced: the Machine goes although the provider is down, its class stays, and VM and Node go when it is back', async () => {
    const name = await occupied('forced');
    const { spec, metadata } = await world.read(name);
    world.cloud.faults.set([{ method: '*', effect: 'fail', code: 'Unavailable' }]);
    const { namespace } = world;
    const classRef = { namespace, name: 'class-1' };

    await world.delete(name);
    await world.gone(name);
    const { uid } = (await world.user.reader.get(machineClasses, classRef)).metadata;
    await world.user.writer.delete('destroy', machineClasses, classRef, { uid });
    expect(hasVM(name)).toBe(true);
    await eventually(async () => {
      const { items } = await world.user.reader.list(events, { namespace });
      const told = items.find(
        ({ reason, involvedObject }) => reason === 'ForcedRemoval' && involvedObject.uid === metadata.uid,
      );
      expect(told).toMatchObject({ type: 'Warning', message: expect.stringContaining(`VM ${spec.providerID ?? ''} `) });
      expect(items.map(({ reason }) => reason)).toContain('ForcedRemovalUnconfirmed');
    }, PATIENCE);
    const { annotations = {} } = (await world.user.reader.get(machineClasses, classRef)).metadata;
    expect(JSON.parse(annotations[`${FORCED_REMOVAL_PREFIX}/${metadata.uid}`] ?? '')).toEqual({
      machine: name,
      node: name,
      providerID: spec.providerID,
    });

    world.cloud.faults.set([]);

    await eventually(() => !hasVM(name), { ...PATIENCE, describe: 'the VM to be found and deleted' });
    await eventually(() => world.isMissing(() => world.user.reader.get(nodes, { name })), PATIENCE);
  });
});
