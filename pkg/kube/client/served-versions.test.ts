import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ApiError, isNotFound } from './errors.ts';
import { machines } from './resource.ts';
import type { Resource } from '../../apis/resource.ts';
import { clusterAPIMachines } from '../../worlds/cluster-api/api/resources.ts';
import { asServed, ServedVersions } from './served-versions.ts';

const GROUP = '/apis/cluster.x-k8s.io';
const notServed = (): ApiError => new ApiError(404, 'NotServed', '404 page not found');

/** A server that has these versions of Machines of Cluster API, and a request that notes in which it was sent. */
class Scene {
  readonly clock = new FakeClock();
  readonly asked: string[] = [];
  readonly sent: string[] = [];
  readonly changes: string[] = [];
  versions: readonly string[];
  /** What is published, where that lags behind. */
  published: readonly string[] | undefined;
  failure: ApiError | undefined;
  readonly served: ServedVersions;

  constructor(...versions: string[]) {
    this.versions = versions;
    this.served = new ServedVersions({ clock: this.clock, discover: (path) => this.#discover(path) });
    this.served.onChange(({ plural }) => void this.changes.push(plural));
  }

  #discover(path: string): Promise<unknown> {
    this.asked.push(path.slice(GROUP.length + 1));
    if (this.failure !== undefined) return Promise.reject(this.failure);
    const versions = this.published ?? this.versions;
    if (path === GROUP) return Promise.resolve({ versions: versions.map((version) => ({ version })) });
    return versions.includes(path.slice(GROUP.length + 1))
      ? Promise.resolve({ resources: [{ name: 'machines' }, { name: 'machines/status' }] })
      : Promise.reject(notServed());
  }

  request = (resource: Resource<never> = clusterAPIMachines as Resource<never>): Promise<string> =>
    asServed(this, resource, undefined, ({ version }) => {
      this.sent.push(version);
      return this.versions.includes(version) || resource !== (clusterAPIMachines as Resource<never>)
        ? Promise.resolve(version)
        : Promise.reject(notServed());
    });

  /** Lets what is asked beside requests be answered. */
  async settle(): Promise<void> {
    await Promise.resolve();
    for (let i = 0; i < 20; i++) await Promise.resolve();
  }
}

describe('the newest version that is served is taken', () => {
  test.each([
    { served: ['v1beta1', 'v1beta2'], taken: 'v1beta2' },
    { served: ['v1beta2'], taken: 'v1beta2' },
    { served: ['v1alpha4', 'v1beta1'], taken: 'v1beta1' },
  ])('of $served: $taken', async ({ served, taken }) => {
    const scene = new Scene(...served);

    expect(await Promise.all([scene.request(), scene.request()])).toEqual([taken, taken]);
    expect(await scene.request()).toBe(taken);
    expect(scene.served.current(clusterAPIMachines).version).toBe(taken);
    expect(scene.asked).toHaveLength(taken === 'v1beta2' ? 1 : 2);
    expect(scene.changes).toEqual([]);
  });

  test('and nothing is asked about what has one version only', async () => {
    const scene = new Scene();

    expect(await scene.request(machines as Resource<never>)).toBe(machines.version);
    expect(scene.asked).toEqual([]);
  });
});

// promise: cluster-api/versions/versions-served-newest-taken
test('none that is understood: it is said which ones there are, no object is said to be gone, and the next request asks again', async () => {
  const scene = new Scene('v1alpha4');
  const failure = await scene.request().catch((err: unknown) => err);

  expect(failure).toMatchObject({
    reason: 'NotServed',
    message: 'machines.cluster.x-k8s.io is not served in version v1beta2 or v1beta1; versions of its group: v1alpha4',
  });
  expect(isNotFound(failure)).toBe(false);
  expect(scene.sent).toEqual([]);
  scene.versions = ['v1beta1'];
  expect(await scene.request()).toBe('v1beta1');
});

describe('versions that change', () => {
  test('a request that finds its version gone is sent in the other one', async () => {
    const scene = new Scene('v1beta1');
    await scene.request();
    scene.versions = ['v1beta2'];

    expect(await scene.request()).toBe('v1beta2');
    expect(scene.sent).toEqual(['v1beta1', 'v1beta1', 'v1beta2']);
    expect(scene.changes).toEqual(['machines']);
  });

  test('one that is gone without another is NotServed, and is found again when it is back', async () => {
    const scene = new Scene('v1beta1');
    await scene.request();
    scene.versions = [];

    await expect(scene.request()).rejects.toMatchObject({ reason: 'NotServed' });
    scene.versions = ['v1beta1'];
    expect(await scene.request()).toBe('v1beta1');
  });

  test('what is published late keeps the answer that there was', async () => {
    const scene = new Scene('v1beta1');
    await scene.request();
    [scene.versions, scene.published] = [['v1beta2'], ['v1beta1']];

    await expect(scene.request()).rejects.toThrow('404 page not found');
    scene.published = undefined;
    expect(await scene.request()).toBe('v1beta2');
  });

  test('a newer one is found after a minute, and no request waits for that', async () => {
    const scene = new Scene('v1beta1');
    await scene.request();
    scene.versions = ['v1beta1', 'v1beta2'];
    scene.clock.advance(59_000);
    await scene.request();
    expect(scene.asked).toHaveLength(2);
    scene.clock.advance(1_000);

    expect(await scene.request()).toBe('v1beta1');
    await scene.settle();
    expect(await scene.request()).toBe('v1beta2');
    expect(scene.changes).toEqual(['machines']);
  });

  test('while nothing is published the known one is used', async () => {
    const scene = new Scene('v1beta1');
    await scene.request();
    scene.failure = new ApiError(0, 'Unreachable', 'refused');
    scene.clock.advance(60_000);

    expect(await scene.request()).toBe('v1beta1');
    await scene.settle();
    expect(await scene.request()).toBe('v1beta1');
    expect(scene.asked).toHaveLength(3);
  });
});

test.each([
  { failure: new ApiError(0, 'Unreachable', 'refused'), comes: 'refused' },
  { failure: new ApiError(403, 'Forbidden', 'no'), comes: 'v1beta2' },
])('at the start, of a server that says "$failure.message", comes $comes', async ({ failure, comes }) => {
  const scene = new Scene('v1beta2');
  scene.failure = failure;

  const [ended] = await Promise.allSettled([scene.request()]);

  expect(ended).toMatchObject(ended.status === 'rejected' ? { reason: { message: comes } } : { value: comes });
});

test('who waits for the first answer is let go when it is aborted, and the others are not', async () => {
  const scene = new Scene('v1beta1');
  const signal = AbortSignal.abort(new Error('enough'));
  const aborted = scene.served.at(clusterAPIMachines, signal, () => Promise.resolve('sent'));

  await expect(aborted).rejects.toThrow('enough');
  expect(await scene.request()).toBe('v1beta1');
});

test('who has left hears of no change', async () => {
  const scene = new Scene('v1beta1');
  const heard: string[] = [];
  const leave = scene.served.onChange(({ plural }) => void heard.push(plural));
  await scene.request();
  leave();
  scene.versions = ['v1beta2'];
  await scene.request();

  expect(scene.changes).toEqual(['machines']);
  expect(heard).toEqual([]);
});
