import { describe, expect, test } from '@jest/globals';

import { clusterMachine, clusterSettings } from '../../../test/cluster-machine.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { secret } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { ClusterMachine } from '../../apis/mirantis/machine.ts';
import { CLASS_INDEX, classIndex } from '../../indexes/class-index.ts';
import type { Writer } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';
import { clusterMachines, configMaps, machines, secrets } from '../../kube/resource.ts';
import { silentLogger } from '../../log/logger.ts';
import { MirantisController } from './controller.ts';

const KEY = 'default/m-1';
const signal = new AbortController().signal;

/** The front end over one Machine; what it writes is what it sees next. */
class World {
  readonly client = new MemoryClient();
  readonly fronts = new MemoryInformer<ClusterMachine>([]);
  readonly machines = new MemoryInformer<Machine>([], { [CLASS_INDEX]: classIndex });
  readonly classes = new MemoryInformer<MachineClass>([]);
  /** How many writes still get an answer; those after it are made, and nobody hears of it. */
  answers = Number.POSITIVE_INFINITY;

  constructor(front: ClusterMachine = clusterMachine()) {
    this.show(front);
    this.client.put(configMaps, clusterSettings());
    this.client.put(
      secrets,
      secret((s) => void (s.metadata.name = 'cluster-1')),
    );
  }

  /** As if a user had written it. */
  show(front: ClusterMachine): void {
    this.client.put(clusterMachines, front);
    this.fronts.put(front);
  }

  get front(): ClusterMachine | undefined {
    return this.fronts.get(KEY);
  }

  /** A pass of a process that knows nothing but what is there. */
  async pass(): Promise<unknown> {
    const controller = new MirantisController({
      clusterMachines: this.fronts,
      machines: this.machines,
      classes: this.classes,
      nodes: undefined,
      reader: this.client,
      writer: this.#writer(),
      targets: { of: () => undefined },
      log: silentLogger,
    });
    return await controller.reconcile(KEY, signal);
  }

  /** Passes until nothing is written any more. */
  async settle(): Promise<void> {
    for (let left = 12; left > 0; left -= 1) {
      const before = this.client.writes.length;
      await this.pass().catch(() => undefined);
      if (this.client.writes.length === before) return;
    }
    throw new Error('it never comes to rest');
  }

  made(what: string): readonly string[] {
    return this.client.writes
      .filter((one) => one.verb === 'create' && one.what.startsWith(what))
      .map((one) => one.what);
  }

  #writer(): Writer {
    const informers: Readonly<Record<string, MemoryInformer<KubeObject>>> = {
      'cluster.k8s.io': this.fronts,
      machines: this.machines as unknown as MemoryInformer<KubeObject>,
      machineclasses: this.classes as unknown as MemoryInformer<KubeObject>,
    };
    const answered = (): void => {
      this.answers -= 1;
      if (this.answers < 0) throw new ApiError(0, 'Unreachable', 'the process has died');
    };
    const cacheOf = (of: { group: string; plural: string }): MemoryInformer<KubeObject> | undefined =>
      informers[of.group] ?? informers[of.plural];
    return {
      create: async (intent, resource, object, options) => {
        const made = await this.client.create(intent, resource, object, options);
        this.client.put(resource, made);
        cacheOf(resource)?.put(made);
        answered();
        return made;
      },
      patch: async (intent, resource, ref, patch, options) => {
        const held = cacheOf(resource)?.get(`${ref.namespace ?? ''}/${ref.name}`);
        if (held !== undefined) this.client.put(resource, held);
        const patched = await this.client.patch(intent, resource, ref, patch, options);
        const isLetGo = patched.metadata.deletionTimestamp !== undefined && patched.metadata.finalizers?.length === 0;
        if (isLetGo) cacheOf(resource)?.remove(KEY);
        else cacheOf(resource)?.put(patched);
        answered();
        return patched;
      },
      delete: async (intent, resource, ref, preconditions, options) => {
        const key = `${ref.namespace ?? ''}/${ref.name}`;
        const held = cacheOf(resource)?.get(key);
        await this.client.delete(intent, resource, ref, preconditions, options);
        if (resource.group === 'cluster.k8s.io' && held !== undefined && (held.metadata.finalizers ?? []).length > 0) {
          cacheOf(resource)?.put(going(held));
        } else cacheOf(resource)?.remove(key);
        answered();
        return undefined;
      },
      evict: () => Promise.reject(new Error('evicts nothing')),
    };
  }
}

function going<T extends KubeObject>(object: T): T {
  const { deletionTimestamp = '2026-01-02T00:00:00Z', resourceVersion } = object.metadata;
  const metadata = { ...object.metadata, deletionTimestamp, resourceVersion: `${resourceVersion}0` };
  return { ...object, metadata };
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
      if (world.front !== undefined) world.show(going(world.front));
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
  world.machines.remove(KEY);
  await world.client.delete('destroy', machines, { namespace: 'default', name: 'm-1' }, { uid: 'uid-of-m-1' });

  await world.settle();

  expect(world.made('machines/')).toHaveLength(1);
  expect(world.front).toBeUndefined();
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
    message: expect.stringContaining('belongs to somebody else'),
  });
  expect(world.machines.get(KEY)?.metadata).toEqual(other);
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
  const labels = { ...clusterMachine().metadata.labels, 'kaas.mirantis.com/region': 'eu' };
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
