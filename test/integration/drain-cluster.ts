import { randomBytes } from 'node:crypto';

import type { Api } from '../../hack/control-plane/api.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Node, Pod, VolumeAttachment } from '../../pkg/apis/wire.ts';
import { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import { InformerSet } from '../../pkg/kube/cache/informers.ts';
import type { Clock } from '../../pkg/base/clock/clock.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { createDrainer } from '../../pkg/drain/drainer.ts';
import type { Drain, DrainRequest } from '../../pkg/drain/drain.ts';
import { DrainLimits } from '../../pkg/drain/limits.ts';
import { podsOnNode } from '../../pkg/drain/node-pods.ts';
import { GatedWriter } from '../../pkg/kube/client/gated-writer.ts';
import { HttpListWatch } from '../../pkg/kube/client/list-watch.ts';
import { HttpReader } from '../../pkg/kube/client/http-reader.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { nodes, pods, volumeAttachments } from '../../pkg/kube/client/resource.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import { Transport } from '../../pkg/kube/client/transport.ts';
import type { RequestRecord } from '../../pkg/kube/client/transport.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import type { Target } from '../../pkg/kube/targets/targets.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { openGate } from './kube-session.ts';
import { asMachinist, grant } from './shipped-roles.ts';

/** Time in drains under test runs so many times faster: evictions are repeated every 0.5 s instead of 20 s. */
const SPEED = 40;

/** A clock whose time passes faster than that of the world; both began at the same moment. */
export class FastClock implements Clock {
  readonly #clock = new SystemClock();
  readonly #beginMs = this.#clock.now();

  now(): number {
    return this.#beginMs + (this.#clock.now() - this.#beginMs) * SPEED;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs() * SPEED;
  }

  schedule(delayMs: number, run: () => void): () => void {
    return this.#clock.schedule(delayMs / SPEED, run);
  }

  sleep(delayMs: number, signal: AbortSignal): Promise<void> {
    return this.#clock.sleep(delayMs / SPEED, signal);
  }
}

/** How a cluster for a drain test differs from the usual one. */
export interface DrainClusterOptions {
  readonly connection?: Connection;
  /** The drainer's way to the server, if there is a proxy in between. */
  readonly url?: string;
  readonly clock?: Clock;
  readonly limits?: DrainLimits;
  /** Stands between the drain's mutations and the server. */
  readonly intercept?: Interceptor;
}

/**
 * A target with a namespace for one test, and a drainer that acts in it with no other permissions than those of
 * deploy/rbac/target.yaml. Arrangements are made by the admin.
 */
export class DrainCluster implements AsyncDisposable {
  readonly namespace: string;
  readonly target: Target;
  readonly drain: Drain;
  readonly clock: Clock;
  /** What the drainer has sent. */
  readonly sent: RequestRecord[];
  readonly #api: Api;
  readonly #disposables: AsyncDisposableStack;

  private constructor(parts: {
    namespace: string;
    target: Target;
    drain: Drain;
    clock: Clock;
    sent: RequestRecord[];
    api: Api;
    disposables: AsyncDisposableStack;
  }) {
    this.namespace = parts.namespace;
    this.target = parts.target;
    this.drain = parts.drain;
    this.clock = parts.clock;
    this.sent = parts.sent;
    this.#api = parts.api;
    this.#disposables = parts.disposables;
  }

  /** Connects, applies the permissions and fills the caches. */
  static async open(options: DrainClusterOptions = {}): Promise<DrainCluster> {
    const { connection = connect(), clock = new FastClock(), limits = new DrainLimits(), intercept, url } = options;
    await using opening = new AsyncDisposableStack();
    const api = connection.api();
    opening.defer(() => api.close());
    const ns = opening.use(await namespace(connection));
    await grant(api, 'target', ns.name);

    const sent: RequestRecord[] = [];
    const transport = new Transport({
      endpoint: await asMachinist({ directory: connection.directory, ca: connection.ca, url: url ?? connection.url }),
      clock: new SystemClock(),
      userAgent: 'machinist/test drain',
      onRequest: (record) => sent.push(record),
    });
    opening.defer(() => transport.close());
    const target = await targetOf(transport, intercept, opening);
    const podsOf = (_: Target, nodeName: string): HttpListWatch<Pod> =>
      new HttpListWatch({ transport, resource: pods, selection: { fieldSelector: podsOnNode(nodeName) } });
    const drain = createDrainer({ clock, log: silentLogger, limits, podsOf });
    return new DrainCluster({ namespace: ns.name, target, drain, clock, sent, api, disposables: opening.move() });
  }

  /** A Node without kubelet, known to the target's cache. */
  async node(): Promise<Node> {
    const name = `n-${randomBytes(5).toString('hex')}`;
    const node = await this.create<Node>('/api/v1/nodes', { metadata: { name } });
    this.#disposables.defer(async () => {
      await this.#api.request(`/api/v1/nodes/${name}`, { method: 'DELETE' });
    });
    await eventually(() => this.target.nodes.get(name) !== undefined, { describe: `node ${name} in the cache` });
    return node;
  }

  /** A Pod bound to this node, running and ready as far as the API server knows. */
  async pod(
    nodeName: string,
    change: (pod: Record<string, unknown> & PodDraft) => void = () => undefined,
  ): Promise<Pod> {
    const draft: PodDraft = {
      metadata: { name: `p-${randomBytes(4).toString('hex')}`, labels: { app: 'web' } },
      spec: { nodeName, terminationGracePeriodSeconds: 30, containers: [{ name: 'c', image: 'registry.example/c:1' }] },
    };
    change(draft as Record<string, unknown> & PodDraft);
    const pod = await this.create<Pod>(this.podsPath(), draft);
    const conditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => ({
      type,
      status: 'True',
    }));
    await this.patch(`${this.podPath(pod)}/status`, { status: { phase: 'Running', conditions } });
    return pod;
  }

  /**
   * A budget over the pods labelled app=web. Resolves when the disruption controller has judged it with so many healthy
   * pods and allowed evictions.
   */
  async budget(minAvailable: number, want: { healthy: number; allowed: number }): Promise<void> {
    const collection = `/apis/policy/v1/namespaces/${this.namespace}/poddisruptionbudgets`;
    await this.create(collection, {
      metadata: { name: 'pdb' },
      spec: { minAvailable, selector: { matchLabels: { app: 'web' } } },
    });
    await eventually(
      async () => {
        const { status } = await this.get<{ status?: Record<string, number> }>(`${collection}/pdb`);
        return status?.['currentHealthy'] === want.healthy && status['disruptionsAllowed'] === want.allowed;
      },
      { timeoutMs: 120_000, describe: 'the budget to be judged' },
    );
  }

  /** Plays a kubelet: pods of the node that are being deleted end after `afterMs` of real time. Until the test ends. */
  endPods(nodeName: string, afterMs = 0, onEnd: (pod: Pod) => Promise<void> = () => Promise.resolve()): void {
    const stop = new AbortController();
    const ending = new Map<string, number>();
    const look = async (): Promise<void> => {
      for (const pod of await this.podsOf(nodeName)) {
        if (pod.metadata.deletionTimestamp === undefined) continue;
        const since = ending.get(pod.metadata.uid) ?? performance.now();
        ending.set(pod.metadata.uid, since);
        if (performance.now() - since < afterMs) continue;
        await this.remove(pod);
        await onEnd(pod);
      }
    };
    const loop = (async () => {
      const clock = new SystemClock();
      while (!stop.signal.aborted) {
        await look();
        await clock.sleep(50, stop.signal).catch(() => undefined);
      }
    })();
    this.#disposables.defer(async () => {
      stop.abort();
      await loop;
    });
  }

  /** Pods of our namespace that are bound to the node. */
  async podsOf(nodeName: string): Promise<Pod[]> {
    const { items } = await this.get<{ items: Pod[] }>(`${this.podsPath()}?fieldSelector=spec.nodeName%3D${nodeName}`);
    return items;
  }

  /** Removes a pod as a kubelet does when it has ended. */
  async remove(pod: Pod): Promise<void> {
    const body = { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } };
    await this.#api.request(this.podPath(pod), { method: 'DELETE', body });
  }

  /** A request for a drain of this node, ending after `withinMs` of the drain's time. */
  request(node: Node, change: Partial<DrainRequest> = {}, withinMs = 10 * 60_000): DrainRequest {
    return {
      target: this.target,
      nodeName: node.metadata.name,
      nodeUID: node.metadata.uid,
      barrier: 'cordon',
      force: false,
      deadlineMs: this.clock.now() + withinMs,
      maxEvictRetries: 360,
      pvDetachTimeoutMs: 120_000,
      pvReattachTimeoutMs: 90_000,
      ...change,
    };
  }

  podsPath(): string {
    return `/api/v1/namespaces/${this.namespace}/pods`;
  }

  podPath({ metadata }: Pod): string {
    return `${this.podsPath()}/${metadata.name}`;
  }

  create<T extends KubeObject>(path: string, body: unknown): Promise<T> {
    return this.#expect<T>(path, 'POST', body);
  }

  get<T>(path: string): Promise<T> {
    return this.#expect<T>(path, 'GET');
  }

  patch<T>(path: string, body: unknown): Promise<T> {
    return this.#expect<T>(path, 'PATCH', body);
  }

  delete<T>(path: string, body?: unknown): Promise<T> {
    return this.#expect<T>(path, 'DELETE', body);
  }

  /** Done when the test ends, last first. */
  defer(end: () => Promise<void>): void {
    this.#disposables.defer(end);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#disposables.disposeAsync();
  }

  async #expect<T>(path: string, method: 'GET' | 'POST' | 'PATCH' | 'DELETE', body?: unknown): Promise<T> {
    const contentType = method === 'PATCH' ? 'application/strategic-merge-patch+json' : 'application/json';
    const answer = await this.#api.request(path, { method, contentType, ...(body === undefined ? {} : { body }) });
    if (answer.status < 300) return answer.body as T; // by the caller's word
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }
}

/** What a Pod is made of before the server has seen it. */
export interface PodDraft {
  metadata: {
    name: string;
    labels: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: unknown[];
    finalizers?: string[];
  };
  spec: { nodeName: string; terminationGracePeriodSeconds: number; containers: unknown[]; [field: string]: unknown };
}

async function targetOf(
  transport: Transport,
  intercept: Interceptor | undefined,
  disposables: AsyncDisposableStack,
): Promise<Target> {
  const set = new InformerSet();
  const informer = <T extends KubeObject>(
    resource: Resource<T>,
    indexes: Record<string, (object: T) => string[]>,
  ): ReflectedInformer<T> =>
    set.add(
      new ReflectedInformer<T>({
        source: new HttpListWatch({ transport, resource }),
        clock: new SystemClock(),
        log: silentLogger,
        cluster: 'target',
        indexes,
        freeze: true,
      }),
    );
  const target: Target = {
    cluster: 'target',
    reader: new HttpReader(transport),
    writer: new GatedWriter({ transport, gate: openGate, cluster: 'target', observer: set, intercept }),
    nodes: informer<Node>(nodes, { providerID: () => [], machineName: () => [] }),
    volumeAttachments: informer<VolumeAttachment>(volumeAttachments, {
      node: ({ spec }) => [spec.nodeName],
      persistentVolume: ({ spec }) => [spec.source.persistentVolumeName ?? ''],
    }),
  };
  const stop = new AbortController();
  const running = set.run(stop.signal);
  disposables.defer(async () => {
    stop.abort();
    await running;
  });
  await set.waitForSync(AbortSignal.timeout(60_000));
  return target;
}
