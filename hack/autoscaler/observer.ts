import type { Node, Pod } from '../../pkg/apis/wire.ts';
import { type CloudProvider, type Group, type GroupOptions, type Instance, refOf } from './cloud-provider.ts';
import type { Cluster } from './cluster.ts';

/** A group with what one loop has learned of it. */
export interface Observed {
  readonly group: Group;
  readonly targetSize: number;
  readonly nodes: readonly Node[];
  readonly instances: readonly Instance[];
}

/** What one loop looks at. */
export interface Observation {
  readonly groups: readonly Observed[];
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
}

/** How much is asked, and how long it is believed. */
export interface ObserverSettings extends GroupOptions {
  /** So long a list of instances is believed while its group does not grow. */
  readonly instanceCacheMs: number;
  /** How often the options of a node's group are asked for in a loop: five times as of 1.35. */
  readonly optionCallsPerNode: number;
}

/** Asks the API server and the cloud provider what there is, with the autoscaler's own cache of instances. */
export class Observer {
  readonly #provider: CloudProvider;
  readonly #cluster: Cluster;
  readonly #settings: ObserverSettings;
  readonly #instances = new Map<string, { readonly listed: readonly Instance[]; readonly atMs: number }>();

  constructor(provider: CloudProvider, cluster: Cluster, settings: ObserverSettings) {
    this.#provider = provider;
    this.#cluster = cluster;
    this.#settings = settings;
  }

  /** `isGrowing` are groups whose instances are asked for anew. Rejects when a size is refused: the autoscaler loses its loop then. */
  async observe(nowMs: number, isGrowing: (group: string) => boolean): Promise<Observation> {
    const [nodes, pods] = [await this.#cluster.nodes(), await this.#cluster.pods()];
    const members = await this.#members(nodes);
    const groups: Observed[] = [];
    for (const group of await this.#provider.nodeGroups()) {
      const targetSize = await this.#provider.targetSize(group.id);
      const own = members.get(group.id) ?? [];
      const isAsked = targetSize > own.length && isGrowing(group.id);
      const instances = await this.#instancesOf(group.id, isAsked, nowMs);
      groups.push({ group, targetSize, nodes: own, instances });
    }
    return { groups, nodes, pods };
  }

  /** The next look at the group asks for its instances again. */
  forget(group: string): void {
    this.#instances.delete(group);
  }

  async #members(nodes: readonly Node[]): Promise<ReadonlyMap<string, readonly Node[]>> {
    const { optionCallsPerNode } = this.#settings;
    const members = new Map<string, Node[]>();
    for (const node of nodes) {
      const group = await this.#provider.nodeGroupForNode(refOf(node));
      if (group === undefined) continue;
      members.set(group.id, [...(members.get(group.id) ?? []), node]);
      for (let i = 0; i < optionCallsPerNode; i++) await this.#provider.options(group.id, this.#settings);
    }
    return members;
  }

  async #instancesOf(group: string, isAsked: boolean, nowMs: number): Promise<readonly Instance[]> {
    const cached = this.#instances.get(group);
    const isBelieved = cached !== undefined && nowMs - cached.atMs < this.#settings.instanceCacheMs;
    if (isBelieved && !isAsked) return cached.listed;
    const listed = await this.#provider.nodes(group);
    this.#instances.set(group, { listed, atMs: nowMs });
    return listed;
  }
}
