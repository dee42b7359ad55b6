import { describe, expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../../test/builders.ts';
import { machinePool } from '../../../../test/cluster-machine.ts';
import { FrontEndWorld, going } from '../../../../test/front-end-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { OwnerReference } from '../../../apis/meta.ts';
import type { ClusterMachine } from '../api/machine.ts';
import type { MachinePool } from '../api/pool.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { configMaps, machineDeployments, machines, machineSets } from '../../../kube/client/resource.ts';
import { clusterMachines, machinePools } from '../api/resources.ts';

const KEY = 'default/pool-1';
const MEMBER = 'default/pool-1-a';

/** The front end over one pool, the MachineDeployment of which has one Machine as soon as a test asks for it. */
class World extends FrontEndWorld {
  constructor(pool: MachinePool = machinePool()) {
    super();
    this.client.wrote(machinePools, pool);
  }

  get pool(): MachinePool | undefined {
    return this.pools.get(KEY);
  }

  get deployment(): MachineDeployment | undefined {
    return this.deployments.get(KEY);
  }

  get member(): ClusterMachine | undefined {
    return this.fronts.get(MEMBER);
  }

  get ours(): Machine | undefined {
    return this.machines.get(MEMBER);
  }

  /** Passes of the pool and of its Machine until nothing is written any more. */
  async rest(): Promise<void> {
    await this.settle(async () => {
      await this.passOfPool(KEY).catch(() => undefined);
      await this.pass(MEMBER).catch(() => undefined);
    });
  }

  /** What the owner controllers make. */
  spawn(): void {
    const set = machineSet((s) => {
      s.metadata.name = 'set-1';
      s.metadata.uid = 'uid-of-set';
      s.metadata.ownerReferences = [ownedBy('MachineDeployment', this.deployment?.metadata.uid)];
    });
    this.client.wrote(machineSets, set);
    this.client.wrote(
      machines,
      machine((m) => {
        m.metadata.name = 'pool-1-a';
        m.metadata.uid = 'uid-of-a';
        m.metadata.labels = { 'kaas.mirantis.com/machinepool-name': 'pool-1' };
        m.metadata.ownerReferences = [ownedBy('MachineSet', 'uid-of-set')];
        m.spec = { class: { kind: 'MachineClass', name: this.deployment?.spec.template.spec?.class?.name ?? '' } };
      }),
    );
  }

  edit(value: object, spec: object = {}): void {
    const { metadata, status } = this.pool ?? machinePool();
    this.client.wrote(machinePools, { ...machinePool(value, spec), metadata, ...(status && { status }) });
  }

  complaint(): string {
    return this.pool?.status?.conditions?.find(({ type, ready }) => type === 'LCM' && !ready)?.message ?? '';
  }
}

function ownedBy(kind: string, uid = ''): OwnerReference {
  return { apiVersion: 'machine.sapcloud.io/v1alpha1', kind, name: 'owner', uid, controller: true };
}

async function withMember(pool?: MachinePool): Promise<World> {
  const world = new World(pool);
  await world.rest();
  world.spawn();
  await world.rest();
  return world;
}

describe('a process that dies after any write', () => {
  // promise: front-end-mirantis/manager-dies-pool-machinedeployment
  test.each([1, 2, 3, 4, 5, 6, 7, 8].map((died) => ({ died })))(
    'makes one MachineDeployment and shows each Machine once: write $died',
    async ({ died }) => {
      const world = new World();
      world.answers = died;
      for (let i = 0; i < 3; i += 1) await world.passOfPool(KEY).catch(() => undefined);
      if (world.deployment !== undefined) world.spawn();
      for (let i = 0; i < 3; i += 1) await world.passOfPool(KEY).catch(() => undefined);
      world.answers = Number.POSITIVE_INFINITY;
      await world.rest();
      if (world.ours === undefined) world.spawn();
      await world.rest();

      expect(world.made('machinedeployments/')).toEqual(['machinedeployments/pool-1']);
      expect(world.made('machineclasses/')).toHaveLength(1);
      expect(world.made('machines/')).toEqual(['machines/pool-1-a']);
      expect(world.member?.spec).toEqual(machinePool().spec?.machineSpec);
      expect(world.ours?.metadata.ownerReferences).toEqual([ownedBy('MachineSet', 'uid-of-set')]);
    },
  );
});

test('the finalizer is there before the MachineDeployment', async () => {
  const world = new World();

  await world.passOfPool(KEY);

  expect(world.pool?.metadata.finalizers).toEqual(['machine.sapcloud.io/front-end']);
  expect(world.made('machine')).toEqual([]);
});

test('an edit reaches the Machines that there are, but maintenance and delete are theirs', async () => {
  const world = await withMember();
  const asked = { ...world.member, spec: { providerSpec: { value: { maintenance: true, delete: true } } } };
  world.client.wrote(clusterMachines, asked as ClusterMachine);

  world.edit({ flavor: 'kaas.large', upgradeIndex: 3, nodeLabels: [{ key: 'a', value: 'b' }] });
  await world.rest();

  expect(world.member?.spec?.providerSpec?.value).toMatchObject({
    flavor: 'kaas.large',
    upgradeIndex: 3,
    maintenance: true,
    delete: true,
  });
  expect(world.ours?.metadata.annotations).toEqual({
    'machine.sapcloud.io/maintenance': 'true',
    'machine.sapcloud.io/prepare-deletion': 'true',
    'machine.sapcloud.io/upgrade-index': '3',
  });
  expect(world.ours?.spec.nodeTemplate).toBeUndefined();
  expect(world.deployment?.spec.template.spec?.nodeTemplate?.metadata?.labels).toEqual({ a: 'b' });
  expect(world.classes.list()).toHaveLength(2);
  expect(world.member?.status?.providerStatus?.conditions).toContainEqual({
    type: 'LCM',
    ready: false,
    message:
      'spec.providerSpec.value.flavor: the server still has the former value; the rollout of the pool replaces it',
  });
});

test('replicas that an autoscaler has chosen are those of the pool', async () => {
  const world = await withMember();
  const { deployment } = world;
  if (deployment !== undefined) {
    world.client.wrote(machineDeployments, { ...deployment, spec: { ...deployment.spec, replicas: 4 } });
  }

  await world.rest();

  expect([world.pool?.spec?.replicas, world.deployment?.spec.replicas]).toEqual([4, 4]);
  world.edit({}, { replicas: 1 });
  await world.rest();
  expect([world.pool?.spec?.replicas, world.deployment?.spec.replicas]).toEqual([1, 1]);
});

test('a pool that is scaled down needs proof that the control cluster is alive, and one that is scaled up does not', async () => {
  const world = await withMember();

  for (const replicas of [4, 1]) {
    world.edit({}, { replicas });
    await world.rest();
  }

  const written = world.client.writes.filter(({ what }) => what.startsWith('machinedeployments/'));
  expect(written.slice(-2).map(({ intent, body }) => [intent, body])).toMatchObject([
    ['change', { spec: { replicas: 4 } }],
    ['destroy', { spec: { replicas: 1 } }],
  ]);
});

// promise: front-end-mirantis/wrong-pool-changes-nothing
test('what is wrong is told, changes nothing, and is made good by correcting it', async () => {
  const world = await withMember();

  world.edit({ flavor: '' }, { replicas: 7 });
  await world.rest();

  expect(world.complaint()).toContain('spec.machineSpec.providerSpec.value.flavor: must be');
  expect(world.deployment?.spec.replicas).toBe(2);
  expect(world.member?.spec).toEqual(machinePool().spec?.machineSpec);
  world.edit({}, { replicas: 7 });
  await world.rest();
  expect(world.deployment?.spec.replicas).toBe(7);
  expect(world.complaint()).not.toContain('flavor');
});

test('without settings nothing is made; of a pool that runs the rest is followed', async () => {
  const world = await withMember();
  world.remove(configMaps, { metadata: { ...machinePool().metadata, name: 'cluster-1' } });

  world.edit({ flavor: 'kaas.large' }, { replicas: 3 });
  await world.rest();

  expect(world.complaint()).toContain('ConfigMap cluster-1: missing, create it with region, networkID or networkName');
  expect(world.deployment?.spec.replicas).toBe(3);
  expect(world.classes.list()).toHaveLength(1);
});

describe('a MachineDeployment of its name', () => {
  // promise: front-end-mirantis/machinedeployment-somebody-else-changed
  test('that belongs to somebody else is neither changed nor deleted', async () => {
    const world = new World();
    const { uid, resourceVersion, creationTimestamp } = machinePool().metadata;
    const other = { name: 'pool-1', namespace: 'default', uid: `${uid}-2`, resourceVersion, creationTimestamp };
    world.client.wrote(machineDeployments, { metadata: other, spec: { template: {} } });

    await world.rest();

    expect(world.complaint()).toContain('belongs to another owner');
    expect(world.client.writes.filter(({ what }) => what.startsWith('machinedeployments/'))).toEqual([]);
  });

  test('that a deleted pool has left behind is adopted, with its Machines', async () => {
    const world = await withMember();
    const { deployment } = world;
    const orphaned = { ...deployment, metadata: { ...deployment?.metadata, ownerReferences: [] } };
    world.client.wrote(machineDeployments, orphaned as unknown as MachineDeployment);
    const writes = world.client.writes.length;

    world.client.wrote(machinePools, machinePool({}, {}, { uid: 'uid-of-another' }));
    await world.rest();

    expect(world.deployment?.metadata.ownerReferences).toMatchObject([{ uid: 'uid-of-another', controller: true }]);
    expect(world.client.writes.slice(writes).filter(({ verb }) => verb !== 'patch')).toEqual([]);
  });

  test('that somebody has deleted is made again when it is gone', async () => {
    const world = await withMember();
    const { deployment } = world;
    if (deployment === undefined) throw new Error('there is none');

    world.client.wrote(machineDeployments, going(deployment));
    await world.rest();
    expect(world.made('machinedeployments/')).toHaveLength(1);
    expect(world.complaint()).toContain('is being deleted');
    world.remove(machineDeployments, { ...deployment, metadata: { ...deployment.metadata, finalizers: [] } });
    await world.rest();

    expect(world.made('machinedeployments/')).toHaveLength(2);
  });

  test('that only the cache does not show is neither made twice nor given up', async () => {
    const world = await withMember();
    const { pool, deployment } = world;
    world.deployments.remove(KEY);
    world.client.failures.push(new ApiError(409, 'AlreadyExists', 'there is one'));

    expect(await world.passOfPool(KEY)).toMatchObject({ kind: 'requeue' });
    if (pool !== undefined && deployment !== undefined) {
      world.client.wrote(machinePools, going(pool));
      world.client.put(machineDeployments, deployment);
    }
    expect(await world.passOfPool(KEY)).toMatchObject({ kind: 'requeue' });
    expect(world.pool?.metadata.finalizers).toEqual(['machine.sapcloud.io/front-end']);
  });
});

describe('the deletion of a pool', () => {
  test('is that of its MachineDeployment, which it waits for, and of the class', async () => {
    const world = await withMember();
    if (world.pool !== undefined) world.client.wrote(machinePools, going(world.pool));

    await world.passOfPool(KEY);
    expect(world.client.writes.at(-2)).toMatchObject({ verb: 'delete', what: 'machinedeployments/pool-1' });
    expect(world.pool).toBeDefined();
    world.sets.remove('default/set-1');
    world.machines.remove(MEMBER);
    await world.passOfPool(KEY);

    expect(world.pool).toBeUndefined();
    expect(world.classes.list()).toEqual([]);
  });

  test('is told on it when its finalizer must not be removed', async () => {
    const world = new World();
    await world.rest();
    if (world.pool !== undefined) world.client.wrote(machinePools, going(world.pool));
    await world.passOfPool(KEY);
    const denied = new ApiError(403, 'Forbidden', 'denied by policy');
    world.client.failures.push(denied, denied);

    expect(await world.passOfPool(KEY)).toMatchObject({ kind: 'requeue' });

    expect(world.complaint()).toBe('refused by the API server: denied by policy');
    await world.passOfPool(KEY);
    expect(world.pool).toBeUndefined();
  });

  test('with --cascade=orphan leaves it', async () => {
    const world = await withMember();
    const { pool, deployment } = world;
    if (pool === undefined || deployment === undefined) throw new Error('there is none');
    const held = { ...pool, metadata: { ...pool.metadata, finalizers: ['machine.sapcloud.io/front-end', 'orphan'] } };
    world.client.wrote(machinePools, going(held));

    await world.passOfPool(KEY);
    expect(world.client.writes.map(({ verb }) => verb)).not.toContain('delete');
    const left = {
      ...deployment,
      metadata: { ...deployment.metadata, resourceVersion: '9999', ownerReferences: [] },
    };
    world.client.put(machineDeployments, left);
    world.client.wrote(
      machinePools,
      going({ ...pool, metadata: { ...pool.metadata, finalizers: ['machine.sapcloud.io/front-end'] } }),
    );
    // The cache does not show yet that it was orphaned.
    await expect(world.passOfPool(KEY)).rejects.toThrow('the object has changed');
    world.client.wrote(machineDeployments, left);
    await world.passOfPool(KEY);

    expect(world.pool).toBeUndefined();
    expect(world.deployment).toBeDefined();
    expect(world.classes.list()).toHaveLength(1);
  });
});

test('a Machine that shows one of a pool is deleted with it, and with it ours; none is made in its place', async () => {
  const world = await withMember();
  const { member } = world;
  if (member === undefined) throw new Error('there is none');

  world.remove(clusterMachines, member);
  await world.pass(MEMBER);
  expect(world.client.writes.filter(({ verb }) => verb === 'delete').map(({ what }) => what)).toEqual([
    'machines/pool-1-a',
  ]);
  await world.rest();
  expect(world.member).toBeUndefined();

  const vanished = await withMember();
  if (vanished.ours !== undefined)
    vanished.remove(machines, { ...vanished.ours, metadata: { ...vanished.ours.metadata, finalizers: [] } });
  await vanished.rest();
  expect([vanished.member, vanished.ours]).toEqual([undefined, undefined]);
  expect(vanished.made('machines/')).toEqual(['machines/pool-1-a']);
});

test('a Machine of a pool that went before anything was noted of it is not made once more outside of the pool', async () => {
  const world = new World();
  await world.rest();
  world.spawn();
  await world.passOfPool(KEY);
  world.machines.remove(MEMBER);
  world.remove(machines, { metadata: { ...machinePool().metadata, name: 'pool-1-a' }, spec: {} });

  await world.rest();

  expect(world.member).toBeUndefined();
  expect(world.ours).toBeUndefined();
});

test('a refusal of one Machine keeps nothing else from happening, and is told', async () => {
  const world = await withMember();
  world.edit({ upgradeIndex: 3 }, { replicas: 3 });
  world.client.failures.push(undefined, new ApiError(422, 'Invalid', 'a webhook says no'));

  await world.passOfPool(KEY);

  expect(world.complaint()).toBe('Machine pool-1-a: refused by the API server: a webhook says no');
  expect(world.deployment?.spec.replicas).toBe(3);
  await world.rest();
  expect(world.member?.spec?.providerSpec?.value).toMatchObject({ upgradeIndex: 3 });
});

describe('between finalizer and MachineDeployment', () => {
  test.each([
    { what: 'a webhook refuses', err: new ApiError(403, 'Forbidden', 'denied the request'), isTold: true },
    {
      what: 'a webhook does not work',
      err: new ApiError(500, 'InternalError', 'failed calling webhook'),
      isTold: true,
    },
    { what: 'the API server finds it invalid', err: new ApiError(422, 'Invalid', 'too long'), isTold: true },
    { what: 'somebody else has written', err: new ApiError(409, 'Conflict', 'changed'), isTold: false },
  ])('$what: told $isTold, and made good by the next pass', async ({ err, isTold }) => {
    const world = new World();
    await world.passOfPool(KEY);
    world.client.failures.push(undefined, err);

    const thrown: unknown = await world.passOfPool(KEY).catch((failure: unknown) => failure);

    expect(thrown === err).toBe(!isTold);
    expect(world.deployment).toBeUndefined();
    expect(world.complaint().includes(err.message)).toBe(isTold);
    await world.rest();
    expect(world.made('machinedeployments/')).toHaveLength(2); // the one that failed, and the one that did not
    expect(world.complaint()).not.toContain('refused');
  });
});

test('a status that others have spoilt is written anew', async () => {
  const world = new World({ ...machinePool(), status: 'text' } as never);

  await world.rest();

  expect(world.pool?.status?.conditions).toHaveLength(1);
});

test.each([
  { what: 'another provider', labels: { 'kaas.mirantis.com/provider': 'aws' } },
  { what: 'no provider', labels: undefined },
])('a pool of $what is left alone', async ({ labels }) => {
  const world = new World(machinePool({}, {}, { labels }));

  await world.passOfPool(KEY);

  expect(world.client.writes).toEqual([]);
});
