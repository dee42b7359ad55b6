import { describe, expect, test } from '@jest/globals';

import { cloudCluster, clusterMachine, machinePool } from '../../../../test/cluster-machine.ts';
import { FrontEndWorld, going } from '../../../../test/front-end-world.ts';
import type { CloudCluster } from '../api/cluster.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machineDeployments, nodeLabelPolicies } from '../../../kube/client/resource.ts';
import { cloudClusters, clusterMachines, machinePools } from '../api/resources.ts';
import { readAllowedLabels, readCluster } from './cluster-value.ts';

const KEY = 'default/cluster-1';
const POOL = 'default/pool-1';
const MACHINE = 'default/m-1';
const AT = 'status.providerStatus.releaseRef.current.allowedNodeLabels';
const allowing = (...allowedNodeLabels: readonly unknown[]): object => ({
  releaseRef: { current: { allowedNodeLabels } },
});

/** A Cluster with a pool and a Machine that belongs to none. */
class World extends FrontEndWorld {
  constructor(cluster: CloudCluster = cloudCluster()) {
    super();
    this.client.wrote(cloudClusters, cluster);
  }

  async rest(): Promise<void> {
    await this.settle(async () => {
      await this.passOfCluster(KEY).catch(() => undefined);
      await this.passOfPool(POOL).catch(() => undefined);
      await this.pass(MACHINE).catch(() => undefined);
    });
  }

  get cluster(): CloudCluster | undefined {
    return this.clusters.get(KEY);
  }

  get lcm(): unknown {
    return this.cluster?.status?.providerStatus?.conditions?.find(({ type }) => type === 'LCM');
  }

  get paused(): unknown {
    return this.deployments.get(POOL)?.spec.paused;
  }

  edit(value: object): void {
    const { metadata, status } = this.cluster ?? cloudCluster();
    this.client.wrote(cloudClusters, { ...cloudCluster(value), metadata, ...(status && { status }) });
  }

  editMachine(value: object): void {
    const { metadata, status } = this.fronts.get(MACHINE) ?? clusterMachine();
    this.client.wrote(clusterMachines, { ...clusterMachine(value), metadata, ...(status && { status }) });
  }

  /** What is wrong with the Machine. */
  complaint(): string {
    const { conditions = [] } = this.fronts.get(MACHINE)?.status?.providerStatus ?? {};
    return conditions.find(({ type }) => type === 'LCM')?.message ?? '';
  }

  inMaintenance(): boolean {
    return this.machines.get(MACHINE)?.metadata.annotations?.['machine.sapcloud.io/maintenance'] === 'true';
  }
}

async function withMembers(cluster?: CloudCluster): Promise<World> {
  const world = new World(cluster);
  world.client.wrote(machinePools, machinePool());
  world.client.wrote(clusterMachines, clusterMachine());
  await world.rest();
  return world;
}

describe('the labels that a Cluster allows', () => {
  test('become a NodeLabelPolicy of its Machines, which follows, and goes when it says nothing any more', async () => {
    const world = new World(cloudCluster({}, allowing({ key: 'a', displayName: 'A' }, { key: 'b', value: 'c' })));
    await world.rest();

    const policy = world.policies.get('default/mcc-cluster-1');
    expect(policy?.spec).toEqual({
      machineLabels: { 'cluster.sigs.k8s.io/cluster-name': 'cluster-1' },
      allowed: [{ key: 'a' }, { key: 'b', value: 'c' }],
    });
    expect(policy?.metadata.ownerReferences).toMatchObject([{ kind: 'Cluster', uid: 'uid-of-cluster' }]);
    world.client.wrote(cloudClusters, cloudCluster({}, allowing()));
    await world.rest();
    expect(world.policies.get('default/mcc-cluster-1')?.spec.allowed).toEqual([]);
    world.client.wrote(cloudClusters, cloudCluster());
    await world.rest();
    expect(world.policies.list()).toEqual([]);
  });

  test.each([
    { given: ['a'], says: `${AT}[0]: must be an object` },
    { given: [{ key: 'no key' }], says: `${AT}[0].key: must be the key of a label` },
    { given: [{ key: 'a', value: 7 }], says: `${AT}[0].value: must be the value of a label, or absent` },
  ])('change nothing while they are wrong: $says', async ({ given, says }) => {
    const world = new World(cloudCluster({}, allowing({ key: 'a' })));
    await world.rest();

    world.client.wrote(cloudClusters, cloudCluster({}, allowing(...given)));
    await world.rest();

    expect(world.lcm).toMatchObject({ ready: false, message: expect.stringContaining(says) });
    expect(world.policies.get('default/mcc-cluster-1')?.spec.allowed).toEqual([{ key: 'a' }]);
  });

  test('that are no list are wrong', () => {
    const status = { providerStatus: { releaseRef: { current: { allowedNodeLabels: 'a' } } } };

    expect(readAllowedLabels({ status }).problems).toEqual([`${AT}: must be a list`]);
  });

  test('leave the NodeLabelPolicy of somebody else alone, and say so', async () => {
    const world = new World(cloudCluster({}, allowing({ key: 'a' })));
    const { metadata } = cloudCluster();
    world.client.wrote(nodeLabelPolicies, { metadata: { ...metadata, name: 'mcc-cluster-1', uid: 'x' }, spec: {} });

    await world.rest();

    expect(world.lcm).toMatchObject({ ready: false, message: expect.stringContaining('belongs to another owner') });
    expect(world.policies.get('default/mcc-cluster-1')?.spec).toEqual({});
  });

  test('are not told to be wrong when only the cache does not show the NodeLabelPolicy', async () => {
    const world = new World(cloudCluster({}, allowing({ key: 'a' })));
    world.client.failures.push(new ApiError(409, 'AlreadyExists', 'there is one'));

    await world.passOfCluster(KEY);

    expect(world.lcm).toMatchObject({ ready: true });
  });

  test('that the API server refuses are told, and tried again', async () => {
    const world = new World(cloudCluster({}, allowing({ key: 'a' })));
    world.client.failures.push(new ApiError(403, 'Forbidden', 'no'));

    expect(await world.passOfCluster(KEY)).toMatchObject({ kind: 'requeue' });
    expect(world.lcm).toMatchObject({ ready: false, message: 'refused by the API server: no' });
    await world.rest();
    expect(world.lcm).toMatchObject({ ready: true });
    expect(world.told).toEqual([
      expect.stringMatching(/^Warning .*: refused by the API server: no$/),
      'Normal Progress cluster-1: The Cluster is served',
    ]);
  });

  test.each([
    { what: 'is changed', value: cloudCluster({}, allowing({ key: 'b' })), verb: 'patch', intent: 'change' },
    { what: 'is deleted', value: cloudCluster(), verb: 'delete', intent: 'destroy' },
  ])('a NodeLabelPolicy $what as it was looked at, and a refusal is told', async ({ value, verb, intent }) => {
    const world = new World(cloudCluster({}, allowing({ key: 'a' })));
    await world.rest();
    const { uid, resourceVersion } = world.policies.get('default/mcc-cluster-1')?.metadata ?? {};
    world.client.wrote(cloudClusters, value);
    world.client.failures.push(new ApiError(403, 'Forbidden', 'no'));
    world.client.writes.splice(0);

    expect(await world.passOfCluster(KEY)).toMatchObject({ kind: 'requeue' });

    expect(world.client.writes[0]).toMatchObject({ verb, intent, uid, resourceVersion });
    expect(world.lcm).toMatchObject({ ready: false, message: 'refused by the API server: no' });
  });

  test('are not limited by a NodeLabelPolicy that is going already, which is not deleted again', async () => {
    const world = new World();
    const { metadata } = cloudCluster();
    const owner = { apiVersion: 'v1', kind: 'Cluster', name: 'cluster-1', uid: metadata.uid, controller: true };
    const leaving = { name: 'mcc-cluster-1', uid: 'x', finalizers: ['a/b'], deletionTimestamp: 'now' };
    world.client.wrote(nodeLabelPolicies, {
      metadata: { ...metadata, ...leaving, ownerReferences: [owner] },
      spec: {},
    });

    expect(await world.passOfCluster(KEY)).toMatchObject({ kind: 'stop' });

    expect(world.client.writes.map(({ verb }) => verb)).not.toContain('delete');
  });
});

describe('maintenance of a Cluster', () => {
  test('is what a Machine waits for also while it is being deleted', async () => {
    const world = await withMembers();
    world.editMachine({ maintenance: true });
    const front = world.fronts.get(MACHINE);
    if (front !== undefined) world.client.wrote(clusterMachines, going(front));

    await world.pass(MACHINE);

    expect(JSON.stringify(world.client.writes)).not.toContain('machine.sapcloud.io/maintenance');
    expect(world.complaint()).toContain('Cluster cluster-1 is not in maintenance');
    await world.rest();
    expect(world.fronts.get(MACHINE)).toBeUndefined();
  });

  // promise: front-end-mirantis/machines-taken-maintenance-cluster
  test('holds rollouts, then admits that of its Machines, and ends when the last of them is out of it', async () => {
    const world = await withMembers();
    world.editMachine({ maintenance: true });
    await world.rest();
    expect(world.complaint()).toContain('Cluster cluster-1 is not in maintenance');
    expect(world.inMaintenance()).toBe(false);

    world.edit({ maintenance: true });
    await world.passOfCluster(KEY);
    expect(world.cluster?.status?.providerStatus?.maintenance).toBe(false);
    expect(world.lcm).toMatchObject({ message: 'Maintenance begins when all rollouts are held' });
    await world.rest();
    expect(world.lcm).toMatchObject({
      message: 'In maintenance: rollouts are held, and Machines can enter maintenance',
    });
    expect([world.paused, world.cluster?.status?.providerStatus?.maintenance, world.inMaintenance()]).toEqual([
      true,
      true,
      true,
    ]);

    world.edit({ maintenance: false });
    await world.rest();
    expect([world.paused, world.cluster?.status?.providerStatus?.maintenance, world.inMaintenance()]).toEqual([
      true,
      true,
      true,
    ]);
    expect(world.lcm).toMatchObject({ message: 'Maintenance ends when these Machines have left it: m-1' });
    world.editMachine({});
    await world.rest();
    expect([world.paused, world.cluster?.status?.providerStatus?.maintenance]).toEqual([false, false]);
    expect(world.lcm).toMatchObject({ message: 'The Cluster is served' });
    expect(world.told.filter((text) => text.includes(' cluster-1:'))).toEqual([
      'Normal Progress cluster-1: The Cluster is served',
      'Normal Progress cluster-1: Maintenance begins when all rollouts are held',
      'Normal Progress cluster-1: In maintenance: rollouts are held, and Machines can enter maintenance',
      'Normal Progress cluster-1: Maintenance ends when these Machines have left it: m-1',
      'Normal Progress cluster-1: The Cluster is served',
    ]);
  });

  test('leaves conditions of others as they are', async () => {
    const others = [{ type: 'Helm', ready: true, message: 'deployed' }];
    const world = new World({ ...cloudCluster(), status: { providerStatus: { conditions: others } } });

    await world.passOfCluster(KEY);

    expect(world.cluster?.status?.providerStatus?.conditions).toEqual([
      expect.objectContaining({ type: 'LCM' }),
      ...others,
    ]);
  });

  // promise: front-end-mirantis/user-paused-stays-paused
  test('leaves a MachineDeployment paused that a user has paused', async () => {
    const world = await withMembers();
    const deployment = world.deployments.get(POOL);
    if (deployment === undefined) throw new Error('there is none');
    world.client.wrote(machineDeployments, { ...deployment, spec: { ...deployment.spec, paused: true } });

    world.edit({ maintenance: true });
    await world.rest();
    world.edit({ maintenance: false });
    await world.rest();

    expect(world.paused).toBe(true);
  });

  test('of a Cluster that is gone holds nothing any more', async () => {
    const world = await withMembers(cloudCluster({ maintenance: true }));
    expect(world.paused).toBe(true);

    world.clusters.remove(KEY);
    await world.rest();

    expect(world.paused).toBe(false);
  });

  test('is not ended by a value that cannot be read', async () => {
    const world = await withMembers(cloudCluster({ maintenance: true }));

    world.edit({ maintenance: 'yes' });
    await world.rest();

    expect(world.paused).toBe(true);
    expect(world.lcm).toMatchObject({
      ready: false,
      message: 'spec.providerSpec.value.maintenance: must be true or false',
    });
  });

  test('is not asked for where there is no Cluster: a Machine goes into maintenance alone', async () => {
    const world = await withMembers();
    world.clusters.remove(KEY);

    world.editMachine({ maintenance: true });
    await world.rest();

    expect(world.inMaintenance()).toBe(true);
  });
});

// promise: openstack/upgrades/control-plane-first-first
test.each([
  { dedicatedControlPlane: undefined, isControlPlane: false, order: 'cluster-1/1' },
  { dedicatedControlPlane: false, isControlPlane: false, order: 'cluster-1/1' },
  { dedicatedControlPlane: true, isControlPlane: false, order: 'cluster-1/1/first' },
  { dedicatedControlPlane: true, isControlPlane: true, order: 'cluster-1/0' },
])('dedicatedControlPlane $dedicatedControlPlane: the order of a pool is $order', async (row) => {
  const { dedicatedControlPlane, isControlPlane, order } = row;
  const world = new World(cloudCluster({ dedicatedControlPlane }));
  const labels = {
    ...machinePool().metadata.labels,
    ...(isControlPlane && { 'cluster.sigs.k8s.io/control-plane': '' }),
  };
  world.client.wrote(machinePools, machinePool({}, {}, { labels }));

  await world.rest();

  expect(world.deployments.get(POOL)?.metadata.annotations?.['machine.sapcloud.io/update-order']).toBe(order);
});

test.each([{ spec: undefined }, { spec: 'text' }, { spec: null }, { spec: { providerSpec: 7 } }])(
  'a Cluster that says nothing asks for nothing: $spec',
  ({ spec }) => {
    expect(readCluster({ spec } as never).value).toEqual({ dedicatedControlPlane: false, maintenance: false });
  },
);

test('a Cluster of another provider is left alone', async () => {
  const world = await withMembers({
    ...cloudCluster({ maintenance: true }),
    metadata: { ...cloudCluster().metadata, labels: {} },
  });

  expect(world.cluster?.status).toEqual({ providerStatus: {} });
  expect(world.paused).toBeUndefined();
});
