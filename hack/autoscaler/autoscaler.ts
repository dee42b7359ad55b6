import type { Node, Pod } from '../../pkg/apis/wire.ts';
import {
  type CloudProvider,
  type Group,
  type GroupOptions,
  type Instance,
  placeholder,
  refOf,
} from './cloud-provider.ts';
import { type Cluster, isReady, occupied, pendingAmong, TO_BE_DELETED } from './cluster.ts';
import { type Place, placeAll } from './placement.ts';
import { resourcesOf } from './resources.ts';
import { isMovable, unneeded } from './scale-down.ts';
import { type Growable, planScaleUp } from './scale-up.ts';

/** How the model behaves, as the autoscaler's flags of like names. */
export interface Settings extends GroupOptions {
  readonly scaleDownDelayAfterAddMs: number;
  readonly nodeGroupBackoffMs: number;
  /** So long a list of instances is believed while its group does not grow. */
  readonly instanceCacheMs: number;
  /** How often the options of a node's group are asked for in a loop: five times as of 1.35. */
  readonly optionCallsPerNode: number;
}

/** The flags that make the autoscaler quick enough to watch. */
export const QUICK: Settings = {
  scaleDownUtilizationThreshold: 0.5,
  scaleDownUnneededMs: 3_000,
  scaleDownDelayAfterAddMs: 3_000,
  maxNodeProvisionMs: 60_000,
  nodeGroupBackoffMs: 10_000,
  instanceCacheMs: 120_000,
  optionCallsPerNode: 1,
};

/** A group with what one loop has learned of it. */
interface Observed {
  readonly group: Group;
  readonly targetSize: number;
  readonly nodes: readonly Node[];
  readonly instances: readonly Instance[];
}

/** What one loop looks at. */
interface Observation {
  readonly groups: readonly Observed[];
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
}

/**
 * A model of the cluster-autoscaler: each loop asks and decides in the order in which the upstream program does (`RunOnce` of its
 * static autoscaler), with its caches and its habits of repeating, so that a server meets here what it meets there. Its choice of
 * nodes is simpler: first fit, and pods by requests, node selector and taints only.
 */
export class Autoscaler {
  readonly #provider: CloudProvider;
  readonly #cluster: Cluster;
  readonly #settings: Settings;
  readonly #say: (line: string) => void;
  readonly #unneededSinceMs = new Map<string, number>();
  readonly #unregisteredSinceMs = new Map<string, number>();
  readonly #wrongSizeSinceMs = new Map<string, number>();
  readonly #backedOffUntilMs = new Map<string, number>();
  readonly #instances = new Map<string, { readonly listed: readonly Instance[]; readonly atMs: number }>();
  readonly #removals = new Map<string, Promise<void>>();
  #grewAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: {
    provider: CloudProvider;
    cluster: Cluster;
    settings?: Partial<Settings>;
    say?: (line: string) => void;
  }) {
    this.#provider = deps.provider;
    this.#cluster = deps.cluster;
    this.#settings = { ...QUICK, ...deps.settings };
    this.#say = deps.say ?? ((): void => undefined);
  }

  /** One loop. Rejects when the loop is lost: a refresh or a size that the server refused, an API server that failed. */
  async runOnce(): Promise<void> {
    await this.#provider.refresh();
    const seen = await this.#observe();
    if (await this.#deleteFailedCreations(seen)) return;
    if (await this.#removeUnregistered(seen)) return;
    await this.#fixSizes(seen);
    const unscheduled = this.#unscheduled(seen, await this.#templates(seen));
    if (unscheduled.length > 0) await this.#scaleUp(seen, unscheduled);
    await this.#scaleDown(seen, unscheduled.length > 0);
  }

  /** Resolves when all removals that have begun have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals.values());
  }

  async #observe(): Promise<Observation> {
    const [nodes, pods] = [await this.#cluster.nodes(), await this.#cluster.pods()];
    const members = new Map<string, Node[]>();
    for (const node of nodes) {
      const group = await this.#provider.nodeGroupForNode(refOf(node));
      if (group === undefined) continue;
      members.set(group.id, [...(members.get(group.id) ?? []), node]);
      for (let i = 0; i < this.#settings.optionCallsPerNode; i++)
        await this.#provider.options(group.id, this.#settings);
    }
    const groups: Observed[] = [];
    for (const group of await this.#provider.nodeGroups()) {
      const targetSize = await this.#provider.targetSize(group.id);
      const own = members.get(group.id) ?? [];
      groups.push({
        group,
        targetSize,
        nodes: own,
        instances: await this.#instancesOf(group.id, targetSize > own.length),
      });
    }
    return { groups, nodes, pods };
  }

  async #instancesOf(group: string, isGrowing: boolean): Promise<readonly Instance[]> {
    const nowMs = performance.now();
    const cached = this.#instances.get(group);
    if (cached !== undefined && !isGrowing && nowMs - cached.atMs < this.#settings.instanceCacheMs)
      return cached.listed;
    const listed = await this.#provider.nodes(group);
    this.#instances.set(group, { listed, atMs: nowMs });
    return listed;
  }

  /** What could not be created is taken back, whatever the minimum, and its group is left alone for a while. */
  async #deleteFailedCreations({ groups }: Observation): Promise<boolean> {
    let hasDeleted = false;
    for (const { group, instances } of groups) {
      const failed = instances.filter(({ state, error }) => state === 'creating' && error !== undefined);
      if (failed.length === 0) continue;
      const { error } = failed[0] ?? {};
      this.#backOff(group.id, `${error?.code}: ${error?.message}`);
      await this.#delete(
        group.id,
        failed.map(({ id }) => id),
      );
      hasDeleted = true;
    }
    return hasDeleted;
  }

  /** Instances that have no Node after the time that provisioning may take are deleted, down to the minimum. */
  async #removeUnregistered({ groups, nodes }: Observation): Promise<boolean> {
    const registered = new Set(nodes.map(({ spec }) => spec?.providerID));
    const waiting = groups.flatMap(({ group, targetSize, instances }) =>
      instances
        .filter(({ id, state }) => state !== 'deleting' && !registered.has(id))
        .map(({ id }) => ({ id, group, targetSize })),
    );
    forgetOthers(
      this.#unregisteredSinceMs,
      waiting.map(({ id }) => id),
    );
    const overdue = waiting.filter(({ id }) =>
      this.#lasts(this.#unregisteredSinceMs, id, this.#settings.maxNodeProvisionMs),
    );
    let hasDeleted = false;
    for (const { group, targetSize } of groups) {
      const own = overdue
        .filter((each) => each.group.id === group.id)
        .slice(0, Math.max(0, targetSize - group.minSize));
      if (own.length === 0) continue;
      await this.#delete(
        group.id,
        own.map(({ id }) => id),
      );
      hasDeleted = true;
    }
    return hasDeleted;
  }

  /** A target that no instance accounts for, for as long as provisioning may take, is lowered. */
  async #fixSizes({ groups }: Observation): Promise<void> {
    const wrong = groups.filter(({ targetSize, instances }) => instances.length < targetSize);
    forgetOthers(
      this.#wrongSizeSinceMs,
      wrong.map(({ group }) => group.id),
    );
    for (const { group, targetSize, instances } of wrong) {
      if (!this.#lasts(this.#wrongSizeSinceMs, group.id, this.#settings.maxNodeProvisionMs)) continue;
      this.#say(`${group.id}: the size ${targetSize} is not met by ${instances.length} instance(s); lowering it`);
      await this.#provider.decreaseTargetSize(group.id, instances.length - targetSize);
    }
  }

  /** What the next node of each group would be. */
  async #templates({ groups }: Observation): Promise<ReadonlyMap<string, Place>> {
    const templates = new Map<string, Place>();
    for (const { group, nodes } of groups) {
      const node = nodes.find(isReady) ?? (await this.#provider.template(group.id));
      if (node !== undefined) templates.set(group.id, templateOf(node, group.id));
    }
    return templates;
  }

  /** Pending pods that fit neither on nodes that are there nor on those that are coming. */
  #unscheduled({ groups, nodes, pods }: Observation, templates: ReadonlyMap<string, Place>): readonly Pod[] {
    const present = nodes.filter(isReady).map((node) => occupied(node, pods).place);
    const coming = groups.flatMap(({ group, targetSize, nodes: own }) => {
      const template = templates.get(group.id);
      const count = Math.max(0, targetSize - own.filter(isReady).length);
      return template === undefined
        ? []
        : Array.from({ length: count }, (_, i) => ({ ...template, name: `coming-${group.id}-${i}` }));
    });
    return placeAll(pendingAmong(pods), [...present, ...coming]).left;
  }

  async #scaleUp(seen: Observation, pods: readonly Pod[]): Promise<void> {
    const templates = await this.#templates(seen);
    const nowMs = performance.now();
    const growable = seen.groups.flatMap(({ group, targetSize }): Growable[] => {
      const template = templates.get(group.id);
      const isBackedOff = (this.#backedOffUntilMs.get(group.id) ?? 0) > nowMs;
      return template === undefined || isBackedOff
        ? []
        : [{ id: group.id, room: group.maxSize - targetSize, template }];
    });
    const plan = planScaleUp(pods, growable);
    if (plan === undefined) return this.#say(`${pods.length} pod(s) pending, and no group can grow for them`);
    this.#say(`${pods.length} pod(s) pending: ${plan.id} grows by ${plan.delta} for ${plan.pods.length} of them`);
    try {
      await this.#provider.increaseSize(plan.id, plan.delta);
      this.#grewAtMs = nowMs;
      this.#instances.delete(plan.id);
    } catch (err) {
      this.#backOff(plan.id, String(err));
    }
  }

  async #scaleDown({ groups, pods }: Observation, isGrowing: boolean): Promise<void> {
    const { scaleDownUtilizationThreshold, scaleDownUnneededMs, scaleDownDelayAfterAddMs } = this.#settings;
    const candidates = groups.flatMap(({ nodes }) => nodes.filter((node) => isReady(node) && isRemovable(node)));
    const idle = unneeded(
      candidates.map((node) => occupied(node, pods)),
      scaleDownUtilizationThreshold,
    );
    forgetOthers(this.#unneededSinceMs, idle);
    const ripe = idle.filter((name) => this.#lasts(this.#unneededSinceMs, name, scaleDownUnneededMs));
    if (isGrowing || performance.now() - this.#grewAtMs < scaleDownDelayAfterAddMs) return;

    for (const { group, targetSize, nodes } of groups) {
      const going = nodes.filter(({ metadata }) => ripe.includes(metadata.name) && !this.#removals.has(metadata.name));
      for (const node of going.slice(0, Math.max(0, targetSize - group.minSize))) {
        const { name } = node.metadata;
        const removal = this.#remove(group.id, node).finally(() => this.#removals.delete(name));
        this.#removals.set(name, removal);
      }
    }
  }

  /** Taints the node, evicts its pods and asks for its deletion, as one of several at once. A refusal takes the taint back. */
  async #remove(group: string, node: Node): Promise<void> {
    const { name } = node.metadata;
    this.#say(`${name} is not needed: evicting its pods`);
    try {
      await this.#cluster.setToBeDeleted(name, true);
      for (;;) {
        const own = (await this.#cluster.pods()).filter((pod) => pod.spec?.nodeName === name && isMovable(pod));
        if (own.length === 0) break;
        for (const pod of own) if (pod.metadata.deletionTimestamp === undefined) await this.#cluster.evict(pod);
        await new Promise((resolve) => void setTimeout(resolve, EVICTION_PAUSE_MS));
      }
      await this.#provider.deleteNodes(group, [refOf(node)]);
      this.#say(`${name}: its deletion was accepted`);
    } catch (err) {
      this.#say(`${name} stays: ${String(err)}`);
      await this.#cluster.setToBeDeleted(name, false);
    }
  }

  async #delete(group: string, ids: readonly string[]): Promise<void> {
    this.#say(`${group}: taking back ${ids.join(', ')}`);
    try {
      await this.#provider.deleteNodes(group, ids.map(placeholder));
    } catch (err) {
      this.#say(`${group}: ${String(err)}`);
    }
    this.#instances.delete(group);
  }

  #backOff(group: string, why: string): void {
    this.#say(`${group} is left alone for a while: ${why}`);
    this.#backedOffUntilMs.set(group, performance.now() + this.#settings.nodeGroupBackoffMs);
  }

  /** Whether this was so for `forMs`, the present moment included. */
  #lasts(sinceMs: Map<string, number>, key: string, forMs: number): boolean {
    const nowMs = performance.now();
    const since = sinceMs.get(key) ?? nowMs;
    sinceMs.set(key, since);
    return nowMs - since >= forMs;
  }
}

const EVICTION_PAUSE_MS = 200;

function forgetOthers(map: Map<string, unknown>, keys: readonly string[]): void {
  for (const key of map.keys()) if (!keys.includes(key)) map.delete(key);
}

function isRemovable({ metadata, spec }: Node): boolean {
  const isDisabled = metadata.annotations?.['cluster-autoscaler.kubernetes.io/scale-down-disabled'] === 'true';
  return (
    !isDisabled &&
    metadata.deletionTimestamp === undefined &&
    spec?.taints?.some(({ key }) => key === TO_BE_DELETED) !== true
  );
}

/** A fresh node like this one: empty, under a name of its own, without the autoscaler's taints. */
function templateOf({ metadata, spec, status }: Node, group: string): Place {
  const taints = (spec?.taints ?? []).filter(({ key }) => key !== TO_BE_DELETED);
  const name = `template-node-for-${group}`;
  return {
    name,
    labels: { ...metadata.labels, 'kubernetes.io/hostname': name },
    taints,
    free: resourcesOf(status?.allocatable),
  };
}
