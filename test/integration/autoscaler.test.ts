import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Channel, createChannel, createClient, Status } from 'nice-grpc';

import { decodeNode } from '../../hack/autoscaler/node-bytes.ts';
import {
  LAST_SCALER_CHANGE_ANNOTATION,
  LEARNED_NODE_ANNOTATION,
  NODE_GROUP_MAX_ANNOTATION,
  NODE_GROUP_MIN_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import {
  CloudProviderDefinition,
  ExternalGrpcNode,
  InstanceStatus_InstanceState as State,
  NodeGroupAutoscalingOptions,
} from '../../pkg/autoscaler/gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import { strategicPatch } from '../../pkg/kube/client/patch.ts';
import { leases, machineClasses, machineDeployments, nodes } from '../../pkg/kube/client/resource.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../../pkg/kube/leader/names.ts';
import { type BuiltMachineClass, machineClass } from '../builders.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { wireMessage } from '../fakes/wire-message.ts';
import { openGate } from './kube-session.ts';
import { MachineSetWorld } from './machine-set-world.ts';

const PATIENCE = { timeoutMs: 90_000 };
const ANNOTATIONS = { [NODE_GROUP_MIN_ANNOTATION]: '0', [NODE_GROUP_MAX_ANNOTATION]: '5' };

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'autoscaler-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A client as the cluster-autoscaler is one, on the socket of a manager. */
class Autoscaler implements Disposable {
  readonly #channel: Channel;
  readonly calls;

  constructor(path: string) {
    this.#channel = createChannel(`unix://${path}`);
    this.calls = createClient(CloudProviderDefinition, this.#channel);
  }

  [Symbol.dispose](): void {
    this.#channel.close();
  }
}

/** The class of the world's Machines. */
async function createClass(world: MachineSetWorld, change: (machineClass: BuiltMachineClass) => void): Promise<void> {
  const { metadata: _metadata, ...content } = machineClass(change);
  const metadata = { name: 'c', namespace: world.namespace.name };
  await world.user.writer.create('create', machineClasses, { ...content, metadata });
}

describe("the autoscaler's port of a manager", () => {
  test('answers about MachineDeployments as they are now, and changes them', async () => {
    const path = join(directory, 'port');
    await using world = await MachineSetWorld.start({
      withNodes: true,
      withProviderIDs: true,
      flags: { 'autoscaler-grpc-address': `unix://${path}` },
    });
    using client = new Autoscaler(path);
    const { calls } = client;
    await eventually(() => calls.refresh({}), PATIENCE);
    const id = 'd';
    await createClass(world, (c) => delete (c as { nodeTemplate?: unknown }).nodeTemplate);
    await world.createDeployment(2, ({ metadata }) => (metadata.annotations = ANNOTATIONS));
    await eventually(() => expect(world.running()).toHaveLength(2), PATIENCE);
    await calls.refresh({});

    expect(await calls.nodeGroups({})).toMatchObject({ nodeGroups: [{ id, minSize: 0, maxSize: 5 }] });
    expect(await calls.nodeGroupTargetSize({ id })).toEqual({ targetSize: 2 });
    const [first = '', second = ''] = world
      .running()
      .map(({ metadata }) => metadata.name)
      .toSorted();
    await eventually(async () => {
      const { instances } = await calls.nodeGroupNodes({ id });
      expect(instances.map((one) => [one.id, one.status?.instanceState])).toEqual([
        [`cloud:///${first}`, State.instanceRunning],
        [`cloud:///${second}`, State.instanceRunning],
      ]);
    }, PATIENCE);
    const node = wireMessage(ExternalGrpcNode, { name: first, providerId: `cloud:///${first}` });
    expect(await calls.nodeGroupForNode({ node })).toMatchObject({ nodeGroup: { id, minSize: 0, maxSize: 5 } });
    const stranger = { ...node, name: 'stranger', providerId: 'cloud:///x' };
    expect(await calls.nodeGroupForNode({ node: stranger })).toMatchObject({
      nodeGroup: { id: '' },
    });

    // A Node shows what the next one will have, although its class says nothing.
    await expect(calls.nodeGroupTemplateNodeInfo({ id })).rejects.toMatchObject({ code: Status.UNIMPLEMENTED });
    await world.setReady(first);
    const ready = await world.user.reader.get(nodes, { name: first });
    const capacity = { cpu: '4', memory: '16Gi' };
    const change = { status: { capacity, allocatable: { ...capacity, cpu: '3900m' } } };
    const status = strategicPatch(ready, change, 'status');
    await world.user.writer.patch('change', nodes, { name: first }, status);
    await eventually(async () => {
      await world.setReady(first); // its kubelet goes on
      const { nodeBytes } = await calls.nodeGroupTemplateNodeInfo({ id });
      expect(Buffer.from(nodeBytes).includes('3900m')).toBe(true);
      const { annotations } = (await world.get(machineClasses, 'c')).metadata;
      expect(annotations?.[LEARNED_NODE_ANNOTATION]).toContain('3900m');
    }, PATIENCE);

    // What others change is seen from the next Refresh on; what is changed here, at once.
    await world.patch(machineDeployments, id, { spec: { replicas: 3 } });
    await calls.refresh({});
    expect(await calls.nodeGroupTargetSize({ id })).toEqual({ targetSize: 3 });
    await calls.nodeGroupIncreaseSize({ id, delta: 1 });
    expect(await calls.nodeGroupTargetSize({ id })).toEqual({ targetSize: 4 });
    expect((await calls.nodeGroupNodes({ id })).instances).toHaveLength(4);
    await calls.nodeGroupDeleteNodes({ id, nodes: [node] });
    expect(await calls.nodeGroupTargetSize({ id })).toEqual({ targetSize: 3 });
    await eventually(() => {
      expect(world.machines.list()).toHaveLength(3);
      expect(world.running()).toHaveLength(3);
      // There were three before the fourth was made, too.
      expect(world.running().map(({ metadata }) => metadata.name)).not.toContain(first);
    }, PATIENCE);

    const before = await world.get(machineDeployments, id);
    await expect(calls.nodeGroupIncreaseSize({ id, delta: 9 })).rejects.toMatchObject({
      code: Status.FAILED_PRECONDITION,
    });
    await expect(calls.nodeGroupIncreaseSize({ id, delta: -1 })).rejects.toMatchObject({
      code: Status.INVALID_ARGUMENT,
    });
    await expect(calls.nodeGroupIncreaseSize({ id: 'other', delta: 1 })).rejects.toMatchObject({
      code: Status.NOT_FOUND,
      details: `node group "other" does not exist: MachineDeployment ${world.namespace.name}/other does not exist`,
    });
    expect((await world.get(machineDeployments, id)).spec).toEqual(before.spec);
    expect(before.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]).toBeDefined();
  });

  test('tells templates that an API server reads, options, and which annotations it cannot obey', async () => {
    const path = join(directory, 'templates');
    await using world = await MachineSetWorld.start({
      flags: { 'autoscaler-grpc-address': `unix://${path}`, nodes: '' },
    });
    using client = new Autoscaler(path);
    const { calls } = client;
    await eventually(() => calls.refresh({}), PATIENCE);
    const id = 'd';
    await world.createDeployment(0, ({ metadata, spec }) => {
      metadata.annotations = { ...ANNOTATIONS, 'autoscaler.gardener.cloud/scale-down-unneeded-time': '1h' };
      Object.assign(spec.template.spec ?? {}, {
        nodeTemplate: {
          metadata: { labels: { tier: 'db' }, annotations: { note: 'x' } },
          spec: { taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }] },
        },
      });
    });
    await calls.refresh({});
    await expect(calls.nodeGroupTemplateNodeInfo({ id })).rejects.toMatchObject({
      code: Status.UNIMPLEMENTED,
      details: 'MachineClass c of MachineDeployment d does not exist',
    });

    await createClass(world, (c) => {
      c.nodeTemplate = { capacity: { cpu: 4, memory: '16Gi', gpu: 0 }, instanceType: 'm4', region: 'eu', zone: 'eu-1' };
    });
    await eventually(() => calls.nodeGroupTemplateNodeInfo({ id }), PATIENCE);
    const template = await calls.nodeGroupTemplateNodeInfo({ id });
    expect(template.embeddedNode).toEqual(template.nodeBytes);
    const api = connect().api(); // the simulated one reads JSON only
    const node = await decodeNode(api, template.nodeBytes);
    await api.close();
    expect(node.metadata).toMatchObject({
      annotations: { note: 'x' },
      labels: { tier: 'db', 'node.kubernetes.io/instance-type': 'm4', 'kubernetes.io/arch': 'amd64' },
    });
    expect(node.spec?.taints).toContainEqual({ key: 'dedicated', value: 'db', effect: 'NoSchedule' });
    expect(node.status).toMatchObject({
      capacity: { cpu: '4', memory: '16Gi', pods: '110' },
      allocatable: { cpu: '4', memory: '16Gi', pods: '110' },
      nodeInfo: { operatingSystem: 'linux', architecture: 'amd64' },
    });
    expect(node.status?.conditions?.map(({ type, status }) => [type, status])).toContainEqual(['Ready', 'True']);

    const minute = { seconds: 60n, nanos: 0 };
    const defaults = wireMessage(NodeGroupAutoscalingOptions, {
      scaleDownUnneeded: minute,
      scaleDownUnready: minute,
      maxNodeProvision: minute,
    });
    expect(await calls.nodeGroupGetOptions({ id, defaults })).toMatchObject({
      nodeGroupAutoscalingOptions: {
        scaleDownUnneeded: { seconds: 3600n, nanos: 0 },
        embeddedScaleDownUnneeded: { nanoseconds: 3_600_000_000_000n },
        scaleDownUnready: minute,
      },
    });

    await world.patch(machineDeployments, id, { metadata: { annotations: { [NODE_GROUP_MAX_ANNOTATION]: 'many' } } });
    await calls.refresh({});
    expect(await calls.nodeGroups({})).toEqual({ nodeGroups: [] });
    await expect(calls.nodeGroupTargetSize({ id })).rejects.toMatchObject({
      code: Status.NOT_FOUND,
      details: expect.stringContaining('"many" is not valid; must be a whole number'),
    });
    await eventually(() =>
      expect(world.events).toContainEqual(
        expect.objectContaining({
          reason: 'InvalidNodeGroup',
          message: expect.stringContaining('"many" is not valid'),
        }),
      ),
    );
  });

  test('of a manager that waits for its Lease says so, until it has it', async () => {
    const path = join(directory, 'standby');
    const flags = { 'autoscaler-grpc-address': `unix://${path}`, 'leader-elect': 'true' };
    const before = async ({ user, namespace: { name } }: MachineSetWorld): Promise<void> => {
      const now = `${new Date().toISOString().slice(0, -1)}000Z`;
      const spec = {
        holderIdentity: 'another',
        leaseDurationSeconds: 3_600,
        acquireTime: now,
        renewTime: now,
        leaseTransitions: 1,
      };
      await user.writer.create('create', leases, { metadata: { name: MANAGER_LEASE, namespace: name }, spec });
    };
    await using world = await MachineSetWorld.start({ flags, before });
    using client = new Autoscaler(path);

    const details = expect.stringContaining(`does not hold Lease ${world.namespace.name}/${MANAGER_LEASE}`);
    await eventually(
      () => expect(client.calls.nodeGroups({})).rejects.toMatchObject({ code: Status.UNAVAILABLE, details }),
      PATIENCE,
    );
    // Released: one that is deleted would bind those who have seen it for its whole hour.
    await world.patch(leases, MANAGER_LEASE, { spec: { holderIdentity: '', leaseDurationSeconds: 1 } });

    await eventually(() => client.calls.refresh({}), PATIENCE);

    // Who may be in another process: the machine controllers.
    const metadata = { name: MACHINE_LEASE, namespace: world.namespace.name };
    await world.user.writer.create('create', leases, { metadata, spec: { holderIdentity: '' } });
    await expect(client.calls.refresh({})).rejects.toMatchObject({
      code: Status.UNAVAILABLE,
      details: expect.stringContaining(`Lease ${world.namespace.name}/${MACHINE_LEASE}`),
    });
    await world.patch(leases, MACHINE_LEASE, { spec: { holderIdentity: 'another', leaseDurationSeconds: 3_600 } });
    await eventually(() => client.calls.refresh({}), PATIENCE);
  });

  test('of a manager that cannot prove any more that it leads answers nothing, and says so', async () => {
    const path = join(directory, 'unproven');
    let trustedForMs = Number.POSITIVE_INFINITY;
    await using world = await MachineSetWorld.start({ flags: { 'autoscaler-grpc-address': `unix://${path}` } });
    await world.killManager();
    const gate = { ...openGate, trustedForMs: () => trustedForMs, graceLeftMs: () => 0, blindMs: () => 0 };
    await world.startManager({ gate });
    using client = new Autoscaler(path);
    await eventually(() => client.calls.refresh({}), PATIENCE);
    await world.createDeployment(0, ({ metadata }) => (metadata.annotations = ANNOTATIONS));
    await client.calls.refresh({});

    trustedForMs = 0;

    const error = { code: Status.UNAVAILABLE, details: expect.stringContaining('does not hold Lease') };
    await expect(client.calls.nodeGroups({})).rejects.toMatchObject(error);
    await expect(client.calls.nodeGroupIncreaseSize({ id: 'd', delta: 1 })).rejects.toMatchObject(error);
    expect((await world.get(machineDeployments, 'd')).spec.replicas).toBe(0);
  });
});
