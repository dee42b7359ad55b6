import { describe, expect, test } from '@jest/globals';

import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { NODE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Secret } from '../../pkg/apis/wire.ts';
import { legacyTokenID, tokenSecretName } from '../../pkg/controllers/machine/tokens/token-id.ts';
import { mergePatch, statusPatch, strategicPatch } from '../../pkg/kube/client/patch.ts';
import { events, machineClasses, machines, machineSets, nodes, secrets } from '../../pkg/kube/client/resource.ts';
import { controllerReference } from '../../pkg/work/reconcile/ownership.ts';
import { forCreation, machineSet } from '../builders.ts';
import { privateApiServer } from '../env/api-server.ts';
import { connect } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';

const EVENT = 'create events 201';

/** Requests by what they are, most first read order left out: the order of independent ones is free. */
function counted(requests: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const request of requests) counts[request] = (counts[request] ?? 0) + 1;
  return counts;
}

describe('a Machine on a real API server', () => {
  test('becomes a Node with 9 requests, and goes with 9', async () => {
    await using world = await MachineWorld.open();
    world.takeRequests();
    const name = await world.create();
    const running = await world.settled(name);
    await eventually(() => world.session.count('create', 'events') === 2);

    expect(running.spec.providerID).toMatch(/^sim:/);
    expect(running.metadata.labels).toEqual({ node: name });
    expect(running.status?.machineConditions?.map(({ type, status }) => `${type}=${status}`)).toEqual([
      'VMCreated=True',
      'NodeJoined=True',
      'Healthy=True',
    ]);
    const node = await world.user.reader.get(nodes, { name });
    expect(node.metadata.finalizers).toContain(NODE_FINALIZER);
    expect(node.metadata.labels?.['node.gardener.cloud/machine-name']).toBe(name);
    expect(counted(world.takeRequests())).toEqual({
      'get secrets 200': 1, // the class's, once for all machines of the class
      'create secrets 201': 1,
      'delete secrets 200': 1,
      'patch machines 200': 1,
      'patch machines/status 200': 3, // that the VM is to be initialized, is Pending, is Running
      'patch nodes 200': 1,
      [EVENT]: 2,
    });

    await world.delete(name);
    await world.gone(name);
    await eventually(() => world.session.count('create', 'events') === 2);

    expect(await world.isMissing(() => world.user.reader.get(nodes, { name }))).toBe(true);
    expect(world.cloud.cloud.all()).toEqual([]);
    // On a slow host DeleteMachine comes so long after its stage was written that the Machine is looked at once more.
    const { 'get machines 200': looks = 0, ...deletion } = counted(world.takeRequests());
    expect(looks).toBeLessThanOrEqual(1);
    expect(deletion).toEqual({
      'patch machines/status 200': 2,
      'patch nodes/status 200': 1,
      'patch nodes 200': 2, // cordon; our finalizer
      'delete nodes 200': 1,
      'patch machines 200': 1,
      [EVENT]: 2,
    });
  });

  test('tells its story as Events', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create();
    const { uid } = (await world.inPhase(name, 'Running')).metadata;
    await world.delete(name);
    await world.gone(name);

    const reasons = await eventually(async () => {
      const { items } = await world.user.reader.list(events, { namespace: world.namespace });
      const told = items.filter(({ involvedObject }) => involvedObject.uid === uid).map(({ reason }) => reason);
      expect(told).toHaveLength(4);
      return told;
    });
    expect(new Set(reasons)).toEqual(new Set(['VMCreated', 'NodeJoined', 'Drained', 'VMDeleted']));
  });

  test('has no managedFields kept when it is of a MachineSet, and can be applied nevertheless', async () => {
    // The simulated server neither keeps managedFields nor applies on the server's side.
    await using world = await MachineWorld.open({ connection: connect() });
    const set = await world.user.writer.create(
      'create',
      machineSets,
      forCreation(machineSet((m) => (m.metadata.namespace = world.namespace))),
    );
    const alone = await world.settled(await world.create());
    const owned = await world.settled(
      await world.create((m) => {
        m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
      }),
    );

    expect(alone.metadata.managedFields?.length).toBeGreaterThan(0);
    expect(owned.metadata.managedFields).toBeUndefined();

    const api = connect().api();
    const path = `/apis/${API_VERSION}/namespaces/${world.namespace}/machines/${owned.metadata.name}`;
    const applying = async (annotations: Record<string, string>): Promise<Record<string, string>> => {
      const body = { apiVersion: API_VERSION, kind: 'Machine', metadata: { name: owned.metadata.name, annotations } };
      const type = 'application/apply-patch+yaml';
      const answer = await api.request(`${path}?fieldManager=a`, { method: 'PATCH', contentType: type, body });
      expect(answer.status).toBe(200);
      return (await world.read(owned.metadata.name)).metadata.annotations ?? {};
    };
    expect(await applying({ mine: 'yes' })).toEqual({ ...owned.metadata.annotations, mine: 'yes' });
    expect(await applying({})).toEqual(owned.metadata.annotations);
    await api.close();
  });

  test('costs nothing while nothing happens', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create();
    await world.settled(name);
    await eventually(() => world.session.count('create', 'events') === 2);
    world.takeRequests();
    const node = await world.user.reader.get(nodes, { name });
    const { metadata } = node;
    const heartbeat = { status: { conditions: [{ type: 'Ready', lastHeartbeatTime: '2030-01-01T00:00:00Z' }] } };
    await world.user.writer.patch('change', nodes, { name }, strategicPatch(node, heartbeat, 'status'));
    await eventually(() => world.nodes.get(name)?.metadata.resourceVersion !== metadata.resourceVersion);

    expect(world.takeRequests()).toEqual([]);
  });

  test('goes with its Node when somebody deletes that', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create();
    await world.settled(name);
    const { uid } = (await world.user.reader.get(nodes, { name })).metadata;

    await world.user.writer.delete('destroy', nodes, { name }, { uid });
    await world.gone(name);

    expect(await world.isMissing(() => world.user.reader.get(nodes, { name }))).toBe(true);
    expect(world.cloud.cloud.all()).toEqual([]);
  });

  test('becomes Unknown and Running again with its Node', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create();
    await world.inPhase(name, 'Running');

    await world.cloud.nodes?.setReadiness(name, 'unknown');
    const unknown = await world.inPhase(name, 'Unknown');
    expect(unknown.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('Unknown');
    await world.cloud.nodes?.setReadiness(name, 'ready');
    const back = await world.inPhase(name, 'Running');
    expect(back.status?.lastOperation).toMatchObject({ type: 'HealthCheck', state: 'Successful' });
    expect(back.status?.lastOperation).not.toHaveProperty('errorCode');
  });

  test('fails by health timeout after a live look', async () => {
    await using world = await MachineWorld.open({ flags: { 'machine-health-timeout': '1s' } });
    const name = await world.create();
    await world.settled(name);
    world.takeRequests();

    await world.cloud.nodes?.setReadiness(name, 'unknown');
    const failed = await world.inPhase(name, 'Failed');

    expect(failed.status?.lastOperation).toMatchObject({ type: 'HealthCheck', state: 'Failed' });
    expect(counted(world.takeRequests())).toMatchObject({ 'get machines 200': 1, 'get nodes 200': 1 });
  });

  test('enforces its node template, taints of others left alone', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create((m) => {
      m.spec.nodeTemplate = {
        metadata: { labels: { tier: 'a', drop: 'x' }, annotations: { note: 'b' } },
        spec: { taints: [{ key: 'ours', effect: 'NoSchedule', value: '1' }] },
      };
    });
    await world.settled(name);
    const node = await world.user.reader.get(nodes, { name });
    expect(node.metadata.labels).toMatchObject({ tier: 'a', drop: 'x' });
    expect(node.metadata.annotations).toMatchObject({ note: 'b' });
    expect(node.spec?.taints).toContainEqual({ key: 'ours', effect: 'NoSchedule', value: '1' });

    const taints = [...(node.spec?.taints ?? []), { key: 'theirs', effect: 'NoSchedule' }];
    await world.user.writer.patch('change', nodes, { name }, strategicPatch(node, { spec: { taints } }));
    const machine = await world.read(name);
    const template = { metadata: { labels: { tier: 'c', drop: null } }, spec: { taints: [] } };
    await world.user.writer.patch(
      'change',
      machines,
      { namespace: world.namespace, name },
      mergePatch(machine, { spec: { nodeTemplate: template } }),
    );

    await eventually(async () => {
      const now = await world.user.reader.get(nodes, { name });
      expect(now.metadata.labels?.['tier']).toBe('c');
      expect(now.metadata.labels).not.toHaveProperty('drop');
      expect(now.spec?.taints?.map(({ key }) => key)).toEqual(['theirs']);
    });
  });

  test('waits for its class, and is healed by it', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create((m) => {
      m.spec.class = { kind: 'MachineClass', name: 'class-2' };
    });
    await eventually(async () => {
      const { status } = await world.read(name);
      expect(status?.lastOperation?.description).toContain('class-2 not found');
      expect(status?.machineConditions?.[0]).toMatchObject({
        type: 'VMCreated',
        status: 'False',
        reason: 'CannotCreate',
      });
    });

    const ref = { namespace: world.namespace, name: 'class-1' };
    const { providerSpec, nodeTemplate, secretRef, provider, metadata } = await world.user.reader.get(
      machineClasses,
      ref,
    );
    const { namespace, finalizers } = metadata;
    await world.user.writer.create('create', machineClasses, {
      metadata: { name: 'class-2', namespace: namespace ?? '', finalizers: finalizers ?? [] },
      providerSpec,
      ...(provider !== undefined && { provider }),
      ...(nodeTemplate !== undefined && { nodeTemplate }),
      ...(secretRef !== undefined && { secretRef }),
    });
    await world.inPhase(name, 'Running');
  });

  test('that never got a VM goes without its class', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create((m) => {
      m.spec.class = { kind: 'MachineClass', name: 'typo' };
    });
    await eventually(async () => (await world.read(name)).status?.lastOperation?.state === 'Failed');
    await world.delete(name);
    await world.gone(name);
  });

  test('takes over a deletion that the original has begun', async () => {
    await using world = await MachineWorld.open();
    const name = await world.create((m) => {
      m.metadata.finalizers = ['keep.example/for-the-test'];
    });
    await world.settled(name);
    const ref = { namespace: world.namespace, name };
    await world.restart(async () => {
      await world.delete(name);
      const status = {
        currentStatus: { phase: 'Terminating', lastUpdateTime: '2026-01-01T00:00:00Z' },
        lastOperation: {
          type: 'Delete',
          state: 'Processing',
          description: 'Drain successful. Initiate VM deletion',
          lastUpdateTime: '2026-01-01T00:00:00Z',
        },
      } as const;
      await world.user.writer.patch('change', machines, ref, statusPatch(await world.read(name), status));
    });
    await eventually(async () => {
      expect((await world.read(name)).metadata.finalizers).toEqual(['keep.example/for-the-test']);
    });

    expect(counted(world.takeRequests())).not.toHaveProperty('patch nodes/status 200'); // no drain
    expect(world.cloud.cloud.all()).toEqual([]);
    expect(await world.isMissing(() => world.user.reader.get(nodes, { name }))).toBe(true);
    const kept = await world.read(name);
    await world.user.writer.patch('change', machines, ref, mergePatch(kept, { metadata: { finalizers: [] } }));
    await world.gone(name);
  });

  test('lives and goes under the definitions of the original, which prune what we add', async () => {
    await using plane = await privateApiServer({ crds: 'original' });
    await using world = await MachineWorld.open({ connection: plane.connection });
    const name = await world.create();
    const running = await world.inPhase(name, 'Running');
    expect(running.status).not.toHaveProperty('machineConditions');

    // Our own definitions refuse the change.
    const other = await world.create();
    await world.inPhase(other, 'Running');
    const [vm] = world.cloud.cloud.named(name);
    const spoiled = { metadata: { labels: { node: name } }, spec: { providerID: vm?.providerID } };
    const ref = { namespace: world.namespace, name: other };
    await world.user.writer.patch('change', machines, ref, mergePatch(await world.read(other), spoiled));
    await eventually(async () => (await world.read(other)).metadata.labels?.['node'] === other, {
      describe: 'the label to be set right',
    });
    await world.delete(other);
    await world.gone(other);
    expect(world.cloud.cloud.all()).toEqual([vm]);
    expect((await world.read(name)).metadata.uid).toBe(running.metadata.uid);
    const node = await world.user.reader.get(nodes, { name });
    expect([node.spec?.unschedulable, node.metadata.deletionTimestamp]).toEqual([undefined, undefined]);

    await world.delete(name);
    await world.gone(name);
    expect(world.cloud.cloud.all()).toEqual([]);
  });
});

describe('bootstrap tokens', () => {
  const kubeSystem = 'kube-system';
  const decode = (secret: Secret, key: string): string => Buffer.from(secret.data?.[key] ?? '', 'base64').toString();
  /** VMs that never join keep their tokens. */
  async function boot(world: MachineWorld): Promise<{ name: string; uid: string }> {
    world.cloud.driver.settings = {
      ...world.cloud.driver.settings,
      latencyMs: { ...world.cloud.driver.settings.latencyMs, join: 3_600_000 },
    };
    const name = await world.create();
    const { uid } = (await world.inPhase(name, 'Pending')).metadata;
    return { name, uid };
  }

  test('are made for one machine, live as long as its creation timeout, and go with it', async () => {
    await using world = await MachineWorld.open({
      flags: { 'bootstrap-token-auth-extra-groups': 'system:bootstrappers:x' },
    });
    const { name, uid } = await boot(world);
    // As the original names it, so that it finds the token after a hand-over.
    const id = legacyTokenID(name) ?? '';
    const ref = { namespace: kubeSystem, name: tokenSecretName(id) };

    const token = await world.user.reader.get(secrets, ref);

    expect(token.type).toBe('bootstrap.kubernetes.io/token');
    expect(token.metadata.annotations).toEqual({ 'machine.sapcloud.io/machine-uid': uid });
    expect(decode(token, 'token-id')).toBe(id);
    expect(decode(token, 'token-secret')).toMatch(/^[a-z0-9]{16}$/);
    expect(decode(token, 'usage-bootstrap-authentication')).toBe('true');
    expect(decode(token, 'usage-bootstrap-signing')).toBe('true');
    expect(decode(token, 'auth-extra-groups')).toBe('system:bootstrappers:x');
    const lifeMs = Date.parse(decode(token, 'expiration')) - Date.parse(token.metadata.creationTimestamp);
    expect(Math.abs(lifeMs - 20 * 60_000)).toBeLessThan(60_000);

    await world.delete(name);
    await world.gone(name);
    expect(await world.isMissing(() => world.user.reader.get(secrets, ref))).toBe(true);
  });

  test('are not made for user data without a place for one', async () => {
    await using world = await MachineWorld.open({ userData: '#cloud-config' });
    await boot(world);

    expect(world.session.count('create', 'secrets')).toBe(0);
  });
});
