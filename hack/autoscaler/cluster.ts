import type { Node, Pod } from '../../pkg/apis/wire.ts';
import { isReady } from '../../pkg/controllers/machine-facts/node-health.ts';
import type { Api } from '../control-plane/api.ts';
import { minus, plus, allocatableOf, requestsOf } from './resources.ts';
import type { Occupied } from './scale-down.ts';

/** The taint by which the autoscaler keeps pods off a node that it removes. */
export const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler';
/** The taint of a node that has just joined; the API server adds it to each new Node. */
export const NOT_READY = 'node.kubernetes.io/not-ready';

/** What the autoscaler, and the scheduler, see of a cluster and do in it, by an API server. */
export class Cluster {
  readonly #api: Api;
  readonly #namespace: string | undefined;

  /** With `namespace`, only its pods are looked at: for tests that share a cluster. */
  constructor(api: Api, namespace?: string) {
    this.#api = api;
    this.#namespace = namespace;
  }

  async nodes(): Promise<readonly Node[]> {
    return (await this.#api.send<{ items: Node[] }>('GET', '/api/v1/nodes')).items;
  }

  /** All pods that have not ended. */
  async pods(): Promise<readonly Pod[]> {
    const scope = this.#namespace === undefined ? '' : `namespaces/${this.#namespace}/`;
    const { items } = await this.#api.send<{ items: Pod[] }>('GET', `/api/v1/${scope}pods`);
    return items.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed');
  }

  async bind(pod: Pod, nodeName: string): Promise<void> {
    const target = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name: pod.metadata.name }, target };
    await this.#tolerating('POST', `${pathOf(pod)}/binding`, body, [404, 409]);
  }

  /** False when a budget refuses for now. */
  async evict(pod: Pod): Promise<boolean> {
    const { name, namespace } = pod.metadata;
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
    return (await this.#tolerating('POST', `${pathOf(pod)}/eviction`, body, [404, 429])) !== 429;
  }

  /** Adds the autoscaler's taint, or removes it. A node that is gone is left alone. */
  async setToBeDeleted(nodeName: string, isTainted: boolean): Promise<void> {
    for (;;) {
      const { status, body } = await this.#api.request(`/api/v1/nodes/${nodeName}`);
      if (status === 404) return;
      const node = body as Node; // by the path
      const others = (node.spec?.taints ?? []).filter(({ key }) => key !== TO_BE_DELETED);
      const own = { key: TO_BE_DELETED, value: String(Math.floor(Date.now() / 1_000)), effect: 'NoSchedule' };
      const { resourceVersion } = node.metadata;
      const patch = { metadata: { resourceVersion }, spec: { taints: isTainted ? [...others, own] : others } };
      const code = await this.#tolerating('PATCH', `/api/v1/nodes/${nodeName}`, patch, [404, 409]);
      if (code !== 409) return;
    }
  }

  async #tolerating(method: 'POST' | 'PATCH', path: string, body: unknown, codes: readonly number[]): Promise<number> {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const answer = await this.#api.request(path, { method, body, contentType });
    if (answer.status < 300 || codes.includes(answer.status)) return answer.status;
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  }
}

/** Ready as the autoscaler counts it: the condition says so, and the taint of a node that just joined is gone. */
export function isUsable(node: Node): boolean {
  return isReady(node) && node.spec?.taints?.some(({ key }) => key === NOT_READY) !== true;
}

/** Pods that wait for a place. */
export function pendingAmong(pods: readonly Pod[]): readonly Pod[] {
  return pods.filter(({ metadata, spec }) => spec?.nodeName === undefined && metadata.deletionTimestamp === undefined);
}

/** The node with its pods, and what is free of it. */
export function occupied(node: Node, pods: readonly Pod[]): Occupied {
  const own = pods.filter(({ spec }) => spec?.nodeName === node.metadata.name);
  const allocatable = allocatableOf(node);
  const free = minus(allocatable, own.map(requestsOf).reduce(plus, {}));
  const cordon =
    node.spec?.unschedulable === true ? [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] : [];
  const taints = [...(node.spec?.taints ?? []), ...cordon];
  return {
    place: { name: node.metadata.name, labels: node.metadata.labels ?? {}, taints, free },
    allocatable,
    pods: own,
  };
}

function pathOf({ metadata: { name, namespace = '' } }: Pod): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}
