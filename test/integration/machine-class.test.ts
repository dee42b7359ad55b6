import { describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { MACHINE_FINALIZER, SECRET_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Lister } from '../../pkg/kube/cache/lister.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { CLASS_INDEX, classIndex } from '../../pkg/operator/indexes/class-index.ts';
import { MachineClassController } from '../../pkg/controllers/machine-class/controller.ts';
import type { LeftoverVMs } from '../../pkg/controllers/machine-class/finalizer-decision.ts';
import { wakeMachinesOfClasses } from '../../pkg/controllers/machine/wake.ts';
import { wakeMachineClasses } from '../../pkg/controllers/machine-class/index.ts';
import { reconcileSecret } from '../../pkg/controllers/secret/index.ts';
import { SecretContents } from '../../pkg/controllers/class-secrets/secret-contents.ts';
import { MACHINE_CLASS_INDEXES } from '../../pkg/operator/indexes/secret-references.ts';
import { wakeSecrets } from '../../pkg/controllers/secret/index.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { machineClasses, machines, nodeLabelPolicies, secrets } from '../../pkg/kube/client/resource.ts';
import { queueMetrics } from '../../pkg/base/metrics/queue.ts';
import { reconcileMetrics } from '../../pkg/base/metrics/reconcile.ts';
import { createRegistry } from '../../pkg/base/metrics/registry.ts';
import { Worker, type Reconcile } from '../../pkg/work/reconcile/worker.ts';
import { Backoff } from '../../pkg/work/workqueue/backoff.ts';
import { KeyedQueue } from '../../pkg/work/workqueue/keyed-queue.ts';
import { forCreation, machine, machineClass, secret } from '../builders.ts';
import { apiServer } from '../env/api-server.ts';
import { namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession } from './kube-session.ts';
import { asMachinist, grant } from './shipped-roles.ts';

const never = new AbortController().signal;

/** The controllers of classes and Secrets at work in a namespace, with the permissions that are shipped. */
class ClassCluster implements AsyncDisposable {
  readonly namespace: string;
  readonly session: KubeSession;
  readonly contents: SecretContents;
  /** What the provider is said to have. */
  ownerless: LeftoverVMs = 'none';
  readonly events: string[] = [];
  readonly wokenMachines: string[] = [];
  /** Time of the class controller only. */
  readonly clock = new FakeClock();
  readonly classQueue: KeyedQueue;
  readonly classes: Lister<MachineClass>;
  /** Without their content. */
  readonly secrets: Lister<KubeObject>;
  readonly #api: Api;
  readonly #disposables: AsyncDisposableStack;

  private constructor(ns: string, session: KubeSession, api: Api, disposables: AsyncDisposableStack) {
    this.namespace = ns;
    this.session = session;
    this.#api = api;
    this.#disposables = disposables;

    const selection = { namespace: ns };
    const classes = session.informer(machineClasses, selection, { indexes: MACHINE_CLASS_INDEXES });
    this.classes = classes;
    const all = session.informer(machines, selection, { indexes: { [CLASS_INDEX]: classIndex } });
    const metadata = session.informer<KubeObject>(secrets, { ...selection, metadataOnly: true });
    this.secrets = metadata;
    const { writer, reader } = session;
    const classController = new MachineClassController({
      classes,
      machines: all,
      writer,
      ownerlessVMs: () => Promise.resolve(this.ownerless),
      recorder: { event: ({ reason, type }) => this.events.push(`${type} ${reason}`) },
      late: { leftMs: () => 0 },
      hasLost: () => false,
      isDistrusted: () => false,
      lookedMs: () => Infinity,
      graceMs: 60_000,
      clock: this.clock,
      log: silentLogger,
    });
    this.classQueue = this.#queue('machineclass', (key, signal) => classController.reconcile(key, signal));
    const secretQueue = this.#queue('secret', (key, signal) =>
      reconcileSecret({ secrets: metadata, classes, writer }, key, signal),
    );
    const machineQueue = { add: (key: string) => this.wokenMachines.push(key), addAfter: () => undefined };
    wakeMachineClasses({ classes, machines: all }, this.classQueue);
    wakeSecrets({ secrets: metadata, classes }, secretQueue);
    const labelPolicies = session.informer(nodeLabelPolicies, selection);
    wakeMachinesOfClasses({ machines: all, classes, secrets: metadata, labelPolicies }, machineQueue);
    this.contents = new SecretContents({ reader, secrets: metadata, classes, clock: session.clock });
  }

  static async open(): Promise<ClassCluster> {
    await using opening = new AsyncDisposableStack();
    const server = opening.use(await apiServer());
    const { connection } = server;
    const api = connection.api();
    opening.defer(() => api.close());
    const ns = opening.use(await namespace(connection));
    await grant(api, 'control-machine-controller', ns.name);
    const session = opening.use(
      new KubeSession(connection, { transport: { endpoint: await asMachinist(connection) } }),
    );
    const cluster = new ClassCluster(ns.name, session, api, opening.move());
    await session.informers.waitForSync(AbortSignal.timeout(60_000));
    return cluster;
  }

  path(resource: 'machines' | 'machineclasses' | 'secrets', name = ''): string {
    const root = resource === 'secrets' ? '/api/v1' : '/apis/machine.sapcloud.io/v1alpha1';
    return `${root}/namespaces/${this.namespace}/${resource}${name === '' ? '' : `/${name}`}`;
  }

  async createClass(change: (object: ReturnType<typeof machineClass>) => void = () => undefined): Promise<void> {
    const object = machineClass((made) => {
      made.metadata.namespace = this.namespace;
      made.secretRef = { name: 'secret-1', namespace: this.namespace };
      change(made);
    });
    await this.#api.send('POST', this.path('machineclasses'), forCreation(object));
  }

  async createMachine(name: string): Promise<void> {
    const object = machine((made) => {
      made.metadata.namespace = this.namespace;
      made.metadata.name = name;
    });
    await this.#api.send('POST', this.path('machines'), forCreation(object));
  }

  async createSecret(name: string, data: Record<string, string>): Promise<void> {
    const object = secret((made) => {
      made.metadata.namespace = this.namespace;
      made.metadata.name = name;
      made.data = Object.fromEntries(
        Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
      );
    });
    await this.#api.send('POST', this.path('secrets'), forCreation(object));
  }

  get<T extends KubeObject>(path: string): Promise<T> {
    return this.#api.send<T>('GET', path);
  }

  patch(path: string, body: unknown): Promise<KubeObject> {
    return this.#api.send('PATCH', path, body);
  }

  delete(path: string): Promise<KubeObject> {
    return this.#api.send('DELETE', path);
  }

  /** Finalizers of an object now; undefined when it does not exist. */
  async finalizers(path: string): Promise<readonly string[] | undefined> {
    const { status, body } = await this.#api.request(path);
    return status === 404 ? undefined : ((body as KubeObject).metadata.finalizers ?? []);
  }

  /** Resolves when the controller has looked at the class as one that is being deleted. */
  async deletionSeen(name: string): Promise<void> {
    const key = `${this.namespace}/${name}`;
    await eventually(() => this.classes.get(key)?.metadata.deletionTimestamp !== undefined);
    await eventually(() => this.classQueue.state.depth === 0 && this.classQueue.state.runningMs.length === 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#disposables.disposeAsync();
  }

  #queue(name: string, reconcile: Reconcile): KeyedQueue {
    const registry = createRegistry();
    const { clock } = this.session;
    const metrics = reconcileMetrics(registry);
    const worker = new Worker({ controller: name, reconcile, timeoutMs: 30_000, clock, log: silentLogger, metrics });
    const queue = new KeyedQueue({
      name,
      concurrency: 2,
      clock,
      backoff: new Backoff({ baseMs: 20, maxMs: 1_000 }),
      metrics: queueMetrics(registry),
      work: worker.work,
    });
    this.#disposables.defer(() => queue.stop(1_000));
    return queue;
  }
}

describe('a MachineClass', () => {
  test('is held while a Machine uses it, also when it is deleted, and let go after the last', async () => {
    await using cluster = await ClassCluster.open();
    const path = cluster.path('machineclasses', 'class-1');
    await cluster.createClass((made) => {
      made.metadata.finalizers = ['example.com/other'];
    });

    await cluster.createMachine('m-1');
    await eventually(async () => (await cluster.finalizers(path))?.includes(MACHINE_FINALIZER));
    await cluster.delete(path);
    await cluster.deletionSeen('class-1');
    const whileUsed = await cluster.finalizers(path);
    await eventually(() => cluster.events.includes('Warning InUse'));
    await cluster.delete(cluster.path('machines', 'm-1'));

    await eventually(async () => (await cluster.finalizers(path))?.length === 1);
    expect(whileUsed).toEqual(['example.com/other', MACHINE_FINALIZER]);
    expect(await cluster.finalizers(path)).toEqual(['example.com/other']);
    expect(cluster.events).toEqual(['Warning InUse']);
    await cluster.patch(path, { metadata: { finalizers: null } });
    expect(await cluster.finalizers(path)).toBeUndefined();
  });

  test('is held after its last Machine until no VM without Machine is left', async () => {
    await using cluster = await ClassCluster.open();
    const path = cluster.path('machineclasses', 'class-1');
    const key = `${cluster.namespace}/class-1`;
    cluster.ownerless = 'some';
    await cluster.createClass((made) => {
      made.metadata.finalizers = [MACHINE_FINALIZER];
    });
    await cluster.delete(path);
    await cluster.deletionSeen('class-1');
    const whileSome = await cluster.finalizers(path);

    cluster.ownerless = 'none';

    // One list alone may be wrong.
    await eventually(async () => {
      cluster.clock.advance(60_000);
      cluster.classQueue.add(key);
      return (await cluster.finalizers(path)) === undefined;
    });
    expect(whileSome).toEqual([MACHINE_FINALIZER]);
    expect(cluster.events).toEqual([]);
  });

  test('is let go with a Warning when nothing was learned of its VMs for ten minutes', async () => {
    await using cluster = await ClassCluster.open();
    const path = cluster.path('machineclasses', 'class-1');
    cluster.ownerless = 'unknown';
    await cluster.createClass((made) => {
      made.metadata.finalizers = [MACHINE_FINALIZER];
    });
    await cluster.delete(path);
    await cluster.deletionSeen('class-1');

    cluster.clock.advance(10 * 60_000);
    cluster.classQueue.add(`${cluster.namespace}/class-1`);

    await eventually(async () => (await cluster.finalizers(path)) === undefined);
    expect(cluster.events).toEqual(['Warning VMsMayBeLeft']);
  });

  test('wakes its Machines when it changes, and not for what does not concern them', async () => {
    await using cluster = await ClassCluster.open();
    const path = cluster.path('machineclasses', 'class-1');
    await cluster.createClass();
    await cluster.createMachine('m-1');
    // From then on every wake is due to a later change.
    await eventually(() => cluster.classes.get(`${cluster.namespace}/class-1`)?.metadata.finalizers?.length === 1);
    const wokenByFinalizer = cluster.wokenMachines.splice(0);

    await cluster.patch(path, { metadata: { annotations: { note: 'nothing new' } } });
    await cluster.patch(path, { providerSpec: { size: 'large' } });

    await eventually(() => cluster.wokenMachines.length > 0);
    expect(cluster.wokenMachines).toEqual([`${cluster.namespace}/m-1`]);
    expect(wokenByFinalizer).toContain(`${cluster.namespace}/m-1`);
  });
});

describe('a Secret', () => {
  test('is held while a class names it, also when it is deleted, and let go after that', async () => {
    await using cluster = await ClassCluster.open();
    const path = cluster.path('secrets', 'secret-1');
    await cluster.createSecret('secret-1', { userData: 'x' });
    await cluster.createSecret('unused', { userData: 'x' });

    await cluster.createClass();
    await eventually(async () => (await cluster.finalizers(path))?.includes(SECRET_FINALIZER));
    await cluster.delete(path);
    const whileNamed = await cluster.finalizers(path);
    await cluster.delete(cluster.path('machineclasses', 'class-1'));

    await eventually(async () => (await cluster.finalizers(path)) === undefined);
    expect(whileNamed).toEqual([SECRET_FINALIZER]);
    expect(await cluster.finalizers(cluster.path('secrets', 'unused'))).toEqual([]);
  });

  test('is not held for a class that names one of another namespace', async () => {
    await using cluster = await ClassCluster.open();
    await cluster.createSecret('secret-1', { userData: 'x' });
    await cluster.createSecret('marker', { userData: 'x' });

    await cluster.createClass((made) => {
      made.secretRef = { name: 'secret-1', namespace: 'somewhere-else' };
      made.credentialsSecretRef = { name: 'marker', namespace: cluster.namespace };
    });
    await eventually(async () => (await cluster.finalizers(cluster.path('secrets', 'marker')))?.length === 1);

    expect(await cluster.finalizers(cluster.path('secrets', 'secret-1'))).toEqual([]);
  });

  test('wakes the Machines of the classes that name it when it changes', async () => {
    await using cluster = await ClassCluster.open();
    const path = cluster.path('secrets', 'secret-1');
    await cluster.createClass();
    await cluster.createMachine('m-1');
    await cluster.createSecret('secret-1', { userData: 'x' });
    // From then on every wake is due to a later change. How many came before depends on which watch was faster.
    await eventually(() => cluster.classes.get(`${cluster.namespace}/class-1`)?.metadata.finalizers?.length === 1);
    await eventually(() => cluster.secrets.get(`${cluster.namespace}/secret-1`)?.metadata.finalizers?.length === 1);
    cluster.wokenMachines.length = 0;

    await cluster.patch(path, { data: { userData: Buffer.from('y').toString('base64') } });

    await eventually(() => cluster.wokenMachines.includes(`${cluster.namespace}/m-1`));
  });
});

describe('the content of the Secrets of a class', () => {
  test('is merged with credentials on top, read once, and read again when a Secret has changed', async () => {
    await using cluster = await ClassCluster.open();
    await cluster.createSecret('secret-1', { userData: 'boot', region: 'r1' });
    await cluster.createSecret('cloud', { region: 'r2', key: 'k' });
    await cluster.createClass((made) => {
      made.credentialsSecretRef = { name: 'cloud', namespace: cluster.namespace };
    });
    const both = ['secret-1', 'cloud'].map((name) => cluster.path('secrets', name));
    for (const path of both) await eventually(async () => (await cluster.finalizers(path))?.length === 1);
    const read = async (): Promise<{
      text: Record<string, string>;
      fingerprint: string;
      missing: readonly string[];
    }> => {
      const object = await cluster.get<MachineClass>(cluster.path('machineclasses', 'class-1'));
      const { data, ...rest } = await cluster.contents.of(object, never);
      const text = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString()]));
      return { text, ...rest };
    };

    const first = await read();
    // Its own reads may have run ahead of the watch until now.
    await eventually(async () => {
      const before = cluster.session.count('get', 'secrets');
      await read();
      return cluster.session.count('get', 'secrets') === before;
    });
    await cluster.patch(cluster.path('secrets', 'cloud'), { metadata: { labels: { touched: 'yes' } } });
    const touched = await read();
    await cluster.patch(cluster.path('secrets', 'cloud'), { data: { key: Buffer.from('k2').toString('base64') } });
    const changed = await eventually(async () => {
      const now = await read();
      return now.text['key'] === 'k2' ? now : false;
    });

    expect(first.text).toEqual({ userData: 'boot', region: 'r2', key: 'k' });
    expect(first.missing).toEqual([]);
    expect(touched.fingerprint).toBe(first.fingerprint);
    expect(changed === false ? undefined : changed.fingerprint).not.toBe(first.fingerprint);
  });

  test('names the Secrets that are missing, and finds them once they are there', async () => {
    await using cluster = await ClassCluster.open();
    await cluster.createClass((made) => {
      made.credentialsSecretRef = { name: 'foreign', namespace: 'kube-system' };
    });
    const object = await cluster.get<MachineClass>(cluster.path('machineclasses', 'class-1'));

    const before = await cluster.contents.of(object, never);
    await cluster.contents.of(object, never);
    const reads = cluster.session.count('get', 'secrets');
    await cluster.createSecret('secret-1', { userData: 'x' });

    expect(before).toMatchObject({ data: {}, missing: [`${cluster.namespace}/secret-1`, 'kube-system/foreign'] });
    expect(reads).toBe(1);
    await eventually(async () => (await cluster.contents.of(object, never)).data['userData'] !== undefined);
  });
});
