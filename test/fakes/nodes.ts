import { CORDONED_BY_MAINTENANCE_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node, VolumeAttachment } from '../../pkg/apis/wire.ts';
import { Store } from '../../pkg/kube/cache/store.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../../pkg/operator/indexes/machine-indexes.ts';
import type { NodeAccess } from '../../pkg/controllers/machine-facts/node-access.ts';
import { nodesRemovedWith } from '../../pkg/controllers/machine-facts/node-owner.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import type { Target } from '../../pkg/kube/targets/targets.ts';

/** What a deletion puts on a Node. */
export const CORDON = {
  metadata: { annotations: { [CORDONED_BY_MAINTENANCE_ANNOTATION]: 'true' } },
  spec: { unschedulable: true },
};

/** Nodes in memory; what is done to them is noted in `done`. */
export class FakeNodes implements NodeAccess {
  readonly cluster = 'target';
  /** Those of the world. */
  machines = new Store<Machine>(MACHINE_INDEXES);
  readonly cache = new Store<Node>(NODE_INDEXES);
  readonly target = { cluster: 'target', nodes: this.cache as Pick<Store<Node>, 'get' | 'list'> } as Target;
  /** What a live read finds where it differs from the cache. */
  readonly live = new Map<string, Node | undefined>();
  /** What live reads fail with. */
  readFailure: unknown;
  readonly volumes: VolumeAttachment[] = [];
  readonly done: string[] = [];
  readonly patches: Record<string, unknown>[] = [];
  failure: unknown;
  /** Patches of Nodes that a webhook refuses. */
  refuses: (change: Record<string, unknown>) => boolean = () => false;
  /** What deletions of VolumeAttachments fail with. */
  detachFailure: unknown;
  /** Whether patches change the cached Node, as the API server would. */
  keepsPatches = false;
  #version = 100;

  get(name: string): Node | undefined {
    return this.cache.get(name);
  }

  ofMachine(machine: Machine): readonly Node[] {
    const found = this.cache.list().filter((node) => {
      const isNamed = node.metadata.name === machine.metadata.labels?.['node'];
      const isShown = node.metadata.labels?.['node.gardener.cloud/machine-name'] === machine.metadata.name;
      const isVM = (node.spec?.providerID ?? '') !== '' && node.spec?.providerID === machine.spec.providerID;
      return isNamed || isShown || isVM;
    });
    return nodesRemovedWith(found, machine, this.machines);
  }

  ofVM(providerID: string): readonly Node[] {
    return this.cache.list().filter(({ spec }) => providerID !== '' && spec?.providerID === providerID);
  }

  read(name: string): Promise<Node | undefined> {
    this.done.push(`read ${name}`);
    if (this.readFailure !== undefined) return Promise.reject(this.readFailure);
    return Promise.resolve(this.live.has(name) ? this.live.get(name) : this.cache.get(name));
  }

  patch(node: Node, change: Record<string, unknown>): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    if (this.refuses(change)) return Promise.reject(new ApiError(422, 'Invalid', 'refused'));
    this.done.push(`patch ${node.metadata.name}`);
    this.patches.push(change);
    if (this.keepsPatches) this.#keep(node, change);
    return Promise.resolve();
  }

  patchStatus(node: Node, status: Record<string, unknown>): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.done.push(`status ${node.metadata.name}`);
    if (this.keepsPatches) this.#keep(node, { status });
    return Promise.resolve();
  }

  cordon(node: Node): Promise<void> {
    return this.patch(node, CORDON);
  }

  remove(node: Node): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.done.push(`remove ${node.metadata.name}`);
    this.cache.remove(node.metadata.name);
    return Promise.resolve();
  }

  attachments(nodeName: string): readonly VolumeAttachment[] {
    return this.volumes.filter(
      ({ spec, metadata }) => spec.nodeName === nodeName && metadata.deletionTimestamp === undefined,
    );
  }

  detach(attachment: VolumeAttachment): Promise<void> {
    if (this.detachFailure !== undefined) return Promise.reject(this.detachFailure);
    this.done.push(`detach ${attachment.metadata.name}`);
    this.volumes.splice(this.volumes.indexOf(attachment), 1);
    return Promise.resolve();
  }

  /** Merges what strategic merge patches of ours contain: maps by key, conditions by type, taints as one list. */
  #keep(node: Node, change: Record<string, unknown>): void {
    const now = this.cache.get(node.metadata.name);
    if (now === undefined || now.metadata.uid !== node.metadata.uid) return;
    const {
      metadata = {},
      spec = {},
      status = {},
    } = change as {
      metadata?: { labels?: Changes; annotations?: Changes; finalizers?: string[] };
      spec?: object;
      status?: { conditions?: { type: string; status: string }[] };
    };
    const conditions = new Map((now.status?.conditions ?? []).map((one) => [one.type, one]));
    for (const one of status.conditions ?? []) conditions.set(one.type, { ...conditions.get(one.type), ...one });
    this.#version += 1;
    this.cache.put({
      ...now,
      metadata: {
        ...now.metadata,
        resourceVersion: String(this.#version),
        labels: merged(now.metadata.labels, metadata.labels),
        annotations: merged(now.metadata.annotations, metadata.annotations),
        finalizers: [...new Set([...(now.metadata.finalizers ?? []), ...(metadata.finalizers ?? [])])],
      },
      spec: { ...now.spec, ...spec },
      status: { ...now.status, conditions: [...conditions.values()] },
    });
  }
}

type Changes = Record<string, string | null>;

function merged(values: Record<string, string> = {}, changes: Changes = {}): Record<string, string> {
  const entries = Object.entries({ ...values, ...changes });
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== null));
}
