import { describe, expect, test } from '@jest/globals';

import { clusterMachine, clusterSettings } from '../../../../test/cluster-machine.ts';
import { FrontEndWorld, going } from '../../../../test/front-end-world.ts';
import type { ClusterMachine } from '../api/machine.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { configMaps, machines } from '../../../kube/client/resource.ts';
import { clusterMachines } from '../api/resources.ts';

const KEY = 'default/m-1';
const REGION_EU = { 'kaas.mirantis.com/region': 'eu' };

/** The front end over one Machine. */
class World extends FrontEndWorld {
  constructor(front: ClusterMachine = clusterMachine()) {
    super();
    this.client.wrote(clusterMachines, front);
  }

  get front(): ClusterMachine | undefined {
    return this.fronts.get(KEY);
  }

  override async pass(): Promise<unknown> {
    return await super.pass(KEY);
  }

  override async settle(): Promise<void> {
    await super.settle(() => this.pass());
  }
}

describe('a process that dies after any write', () => {
  test.each([1, 2, 3, 4, 5, 6].map((died) => ({ died })))(
    'makes one Machine and one class, and takes both away: write $died',
    async ({ died }) => {
      const world = new World();
      world.answers = died;
      await world.pass().catch(() => undefined);
      await world.pass().catch(() => undefined);
      world.answers = Number.POSITIVE_INFINITY;
      await world.settle();

      expect(world.made('machines/')).toEqual(['machines/m-1']);
      expect(world.made('machineclasses/')).toHaveLength(1);
      expect(world.front?.metadata.annotations?.['machine.sapcloud.io/made-machine-uid']).toBe(
        'uid-of-front/uid-of-m-1',
      );
      if (world.front !== undefined) world.client.wrote(clusterMachines, going(world.front));
      world.answers = died;
      await world.pass().catch(() => undefined);
      await world.pass().catch(() => undefined);
      world.answers = Number.POSITIVE_INFINITY;
      await world.settle();

      expect([world.front, world.machines.list(), world.classes.list()]).toEqual([undefined, [], []]);
      expect(world.made('machines/')).toHaveLength(1);
    },
  );
});

test('the finalizer is there before the Machine', async () => {
  const world = new World();

  await world.pass();

  expect(world.client.writes.map(({ verb, what }) => `${verb} ${what}`)).toEqual([
    'patch machines/m-1',
    'patch machines/m-1/status',
  ]);
  expect(world.front?.metadata.finalizers).toEqual(['machine.sapcloud.io/front-end']);
});

test('a Machine that somebody has deleted is not made again: the object goes too', async () => {
  const world = new World();
  await world.settle();
  world.client.deleted(machines, { namespace: 'default', name: 'm-1' });

  await world.settle();

  expect(world.made('machines/')).toHaveLength(1);
  expect(world.front).toBeUndefined();
});

describe('a Machine from which somebody has taken the reference to its owner', () => {
  async function stripped(of: object): Promise<World> {
    const world = new World();
    await world.settle();
    const ours = world.machines.get(KEY);
    if (ours === undefined) throw new Error('there is none');
    world.client.wrote(machines, { ...ours, metadata: { ...ours.metadata, ownerReferences: [], ...of } });
    return world;
  }

  test('gets it back', async () => {
    const world = await stripped({});

    await world.settle();

    expect(world.front?.metadata.deletionTimestamp).toBeUndefined();
    expect(world.machines.get(KEY)?.metadata.ownerReferences).toMatchObject([
      { kind: 'Machine', name: 'm-1', uid: 'uid-of-front', controller: true },
    ]);
    expect(world.made('machines/')).toHaveLength(1);
  });

  test('does not get it back while the object is deleted with --cascade=orphan, which the cache may not show yet', async () => {
    const world = await stripped({});
    const { front } = world;
    if (front === undefined) throw new Error('there is none');
    world.client.put(clusterMachines, going({ ...front, metadata: { ...front.metadata, resourceVersion: '9999' } }));

    await expect(world.pass()).rejects.toThrow('the object has changed');

    expect(world.machines.get(KEY)?.metadata.ownerReferences).toEqual([]);
  });

  test.each([
    { what: 'is another one than was made', of: { uid: 'uid-of-another' } },
    {
      what: 'belongs to somebody else now',
      of: { ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'u', controller: true }] },
    },
  ])('is left alone when it $what', async ({ of }) => {
    const world = await stripped(of);
    const before = world.machines.get(KEY);

    await world.settle();

    expect(world.front).toBeUndefined();
    expect(world.machines.get(KEY)).toEqual(before);
  });
});

test('a note that was restored with an object is not about it: its Machine is made', async () => {
  const note = { 'machine.sapcloud.io/made-machine-uid': 'uid-of-another/uid-of-its-machine' };
  const world = new World(clusterMachine({}, { annotations: note }));

  await world.settle();

  expect(world.made('machines/')).toEqual(['machines/m-1']);
});

test('a Machine that only the cache does not show is waited for', async () => {
  const world = new World();
  await world.settle();
  const made = world.machines.get(KEY);
  world.machines.remove(KEY);
  if (made !== undefined) world.client.put(machines, made);
  const before = world.client.writes.length;

  expect(await world.pass()).toMatchObject({ kind: 'requeue' });
  expect(world.client.writes).toHaveLength(before);
});

test('a Machine of that name that belongs to somebody else is neither changed nor deleted', async () => {
  const world = new World();
  const { uid, resourceVersion, creationTimestamp } = clusterMachine().metadata;
  const other = { name: 'm-1', namespace: 'default', uid: `${uid}-2`, resourceVersion, creationTimestamp };
  world.machines.put({ metadata: other, spec: {} });

  await world.pass();

  expect(world.front?.status?.providerStatus?.conditions).toContainEqual({
    type: 'LCM',
    ready: false,
    message: expect.stringContaining('belongs to another owner'),
  });
  expect(world.machines.get(KEY)?.metadata).toEqual(other);
});

describe('the deletion with --cascade=orphan', () => {
  /** The garbage collector takes the reference off our Machine, and then its finalizer off the object. */
  async function orphaned(isSeen: boolean): Promise<World> {
    const world = new World();
    await world.settle();
    const { front } = world;
    const ours = world.machines.get(KEY);
    if (front === undefined || ours === undefined) throw new Error('there is none');
    const { finalizers = [] } = front.metadata;
    const held = { ...front, metadata: { ...front.metadata, finalizers: [...finalizers, 'orphan'] } };
    world.client.wrote(clusterMachines, going(held));
    await world.pass();
    const left = { ...ours, metadata: { ...ours.metadata, resourceVersion: '9999', ownerReferences: [] } };
    if (isSeen) world.client.wrote(machines, left);
    else world.client.put(machines, left);
    world.client.wrote(clusterMachines, going(front));
    return world;
  }

  test('leaves its Machine, and the class of that', async () => {
    const world = await orphaned(true);

    await world.settle();

    expect(world.front).toBeUndefined();
    expect(world.machines.get(KEY)?.metadata.deletionTimestamp).toBeUndefined();
    expect(world.classes.list()).toHaveLength(1);
    expect(world.client.writes.map(({ verb }) => verb)).not.toContain('delete');
  });

  test('leaves it also where the cache does not show yet that it was orphaned', async () => {
    const world = await orphaned(false);

    await expect(world.pass()).rejects.toThrow('the object has changed');

    expect(await world.client.get(machines, { namespace: 'default', name: 'm-1' })).toMatchObject({
      metadata: { ownerReferences: [] },
    });
  });
});

test('a deletion of its Machine that is refused is a problem of the object, and is tried again', async () => {
  const world = new World();
  await world.settle();
  if (world.front !== undefined) world.client.wrote(clusterMachines, going(world.front));
  world.client.failures.push(new ApiError(403, 'Forbidden', 'denied by policy'));

  expect(await world.pass()).toMatchObject({ kind: 'requeue' });

  expect(world.front?.status?.providerStatus?.conditions).toContainEqual({
    type: 'LCM',
    ready: false,
    message: 'refused by the API server: denied by policy',
  });
  await world.settle();
  expect([world.front, world.machines.list()]).toEqual([undefined, []]);
});

describe('what ends an object', () => {
  const denied = new ApiError(403, 'Forbidden', 'denied by policy');
  const told = { type: 'LCM', ready: false, message: 'refused by the API server: denied by policy' };

  async function deleted(): Promise<World> {
    const world = new World();
    await world.settle();
    if (world.front !== undefined) world.client.wrote(clusterMachines, going(world.front));
    await world.pass();
    return world;
  }

  test('is not held up by a class that must not be deleted, which is tried again with the next object', async () => {
    const world = await deleted();
    world.client.failures.push(denied);

    await world.pass();

    expect(world.front).toBeUndefined();
    expect(world.classes.list()).toHaveLength(1);
    world.client.wrote(clusterMachines, clusterMachine({ flavor: 'kaas.large' }));
    await world.settle();
    expect(world.classes.list()).toMatchObject([{ providerSpec: { spec: { flavorName: 'kaas.large' } } }]);
  });

  test('is a problem of it when its finalizer must not be removed', async () => {
    const world = await deleted();
    world.client.failures.push(undefined, denied);

    expect(await world.pass()).toMatchObject({ kind: 'requeue' });

    expect(world.front?.status?.providerStatus?.conditions).toContainEqual(told);
    await world.settle();
    expect(world.front).toBeUndefined();
  });

  test('is a problem of it when it must not be deleted although its Machine is gone', async () => {
    const world = new World();
    await world.settle();
    world.client.deleted(machines, { namespace: 'default', name: 'm-1' });
    world.client.failures.push(denied);

    expect(await world.pass()).toMatchObject({ kind: 'requeue' });

    expect(world.front?.status?.providerStatus?.conditions).toContainEqual(told);
  });
});

test('a pass that fails leaves the problems that the object shows', async () => {
  const world = new World(clusterMachine({}, { labels: { ...clusterMachine().metadata.labels, ...REGION_EU } }));
  world.client.put(configMaps, clusterSettings({ labelledRegion: 'us' }));
  await world.pass();
  const shown = world.front?.status;
  world.client.readFailure = new ApiError(503, 'ServiceUnavailable', 'away');

  await expect(world.pass()).rejects.toThrow('away');

  expect(shown?.providerStatus?.conditions).toContainEqual(expect.objectContaining({ type: 'LCM', ready: false }));
  expect(world.front?.status).toEqual(shown);
});

test.each([
  { what: 'another provider', labels: { 'kaas.mirantis.com/provider': 'aws' } },
  { what: 'no provider', labels: undefined },
])('a Machine of $what is left alone', async ({ labels }) => {
  const world = new World(clusterMachine({}, { labels }));

  await world.pass();

  expect(world.client.writes).toEqual([]);
});

test('a region that is not that of the Cluster makes nothing, and says so', async () => {
  const labels = { ...clusterMachine().metadata.labels, ...REGION_EU };
  const world = new World(clusterMachine({}, { labels }));
  world.client.put(configMaps, clusterSettings({ labelledRegion: 'us' }));

  await world.pass();

  expect(world.front?.status?.providerStatus?.conditions).toContainEqual({
    type: 'LCM',
    ready: false,
    message: 'metadata.labels.kaas.mirantis.com/region: must be us, the region of the Cluster',
  });
  expect(world.made('machines/')).toEqual([]);
});
