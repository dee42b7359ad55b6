import type { Node, Pod } from '../../pkg/apis/wire.ts';
import { type CloudProvider, placeholder, refOf } from './cloud-provider.ts';
import { type Cluster, isUsable, occupied, NOT_READY, pendingAmong, TO_BE_DELETED } from './cluster.ts';
import { type Observation, Observer, type ObserverSettings } from './observer.ts';
import { type Place, placeAll } from './placement.ts';
import { resourcesOf } from './resources.ts';
import { isMovable, unneeded } from './scale-down.ts';
import { type Growable, planScaleUp } from './scale-up.ts';
import { Since } from './since.ts';

/** How the model behaves, as the autoscaler's flags of like names. */
export interface Settings extends ObserverSettings {
  readonly scaleDownDelayAfterAddMs: number;
  readonly nodeGroupBackoffMs: number;
}

/** Quick enough to watch. */
const QUICK: Settings = {
  scaleDownUtilizationThreshold: 0.5,
  scaleDownUnneededMs: 3_000,
  scaleDownDelayAfterAddMs: 3_000,
  maxNodeProvisionMs: 60_000,
  nodeGroupBackoffMs: 10_000,
  instanceCacheMs: 120_000,
  optionCallsPerNode: 1,
};

const EVICTION_PAUSE_MS = 200;

/**
 * A model of the cluster-autoscaler: each loop asks and decides in the order in which the upstream program does (`RunOnce` of its
 * static autoscaler), with its caches and its habit of repeating, so that a server meets here what it meets there. Its choice of
 * nodes is simpler: first fit, and pods by requests, node selector and taints only.
 */
export class Autoscaler {
  readonly #provider: CloudProvider;
  readonly #cluster: Cluster;
  readonly #settings: Settings;
  readonly #say: (line: string) => void;
  readonly #observer: Observer;
  readonly #unneeded = new Since();
  readonly #unregistered = new Since();
  readonly #wrongSize = new Since();
  readonly #backedOffUntilMs = new Map<string, number>();
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
    this.#say = onceEach(deps.say ?? ((): void => undefined));
    this.#observer = new Observer(deps.provider, deps.cluster, this.#settings);
  }

  /** One loop. Rejects when the loop is lost: a refresh or a size that the server refused, an API server that failed. */
  async runOnce(): Promise<void> {
    await this.#provider.refresh();
    const seen = await this.#observer.observe();
    if (await this.#deleteFailedCreations(seen)) return;
    if (await this.#removeUnregistered(seen)) return;
    await this.#fixSizes(seen);
    const templates = await this.#templates(seen);
    const unscheduled = unscheduledAmong(seen, templates);
    if (unscheduled.length > 0) await this.#scaleUp(seen, unscheduled, templates);
    this.#scaleDown(seen, unscheduled.length > 0);
  }

  /** Resolves when all removals that have begun have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals.values());
  }

  /** What could not be created is taken back, whatever the minimum, and its group is left alone for a while. */
  async #deleteFailedCreations({ groups }: Observation): Promise<boolean> {
    let hasDeleted = false;
    for (const { group, instances } of groups) {
      const failed = instances.filter(({ state, error }) => state === 'creating' && error !== undefined);
      if (failed.length === 0) continue;
      const { error } = failed[0] ?? {};
      this.#backOff(group.id, `${error?.code}: ${error?.message}`);
      const ids = failed.map(({ id }) => id);
      await this.#takeBack(group.id, ids);
      hasDeleted = true;
    }
    return hasDeleted;
  }

  /** Instances that have no Node after the time that provisioning may take are deleted, down to the minimum. */
  async #removeUnregistered({ groups, nodes }: Observation): Promise<boolean> {
    const registered = new Set(nodes.map(({ spec }) => spec?.providerID));
    const isMissing = ({ id, state }: { id: string; state: unknown }): boolean =>
      state !== 'deleting' && !registered.has(id);
    const missing = groups.flatMap(({ instances }) => instances.filter(isMissing).map(({ id }) => id));
    const overdue = this.#unregistered.observe(missing, this.#settings.maxNodeProvisionMs);
    let hasDeleted = false;
    for (const { group, targetSize, instances } of groups) {
      const own = instances.map(({ id }) => id).filter((id) => overdue.includes(id));
      const removable = own.slice(0, Math.max(0, targetSize - group.minSize));
      if (removable.length === 0) continue;
      await this.#takeBack(group.id, removable);
      hasDeleted = true;
    }
    return hasDeleted;
  }

  /** A target that no instance accounts for, for as long as provisioning may take, is lowered. */
  async #fixSizes({ groups }: Observation): Promise<void> {
    const wrong = groups.filter(({ targetSize, instances }) => instances.length < targetSize);
    const ids = wrong.map(({ group }) => group.id);
    const overdue = this.#wrongSize.observe(ids, this.#settings.maxNodeProvisionMs);
    for (const { group, targetSize, instances } of wrong) {
      if (!overdue.includes(group.id)) continue;
      this.#say(`${group.id}: size ${targetSize} is not met by ${instances.length} instance(s); lowering it`);
      await this.#provider.decreaseTargetSize(group.id, instances.length - targetSize);
    }
  }

  /** What the next node of each group would be, after one that is there or by the server's word. */
  async #templates({ groups }: Observation): Promise<ReadonlyMap<string, Place>> {
    const templates = new Map<string, Place>();
    for (const { group, nodes } of groups) {
      const node = nodes.find(isUsable) ?? (await this.#provider.template(group.id));
      if (node !== undefined) templates.set(group.id, templateOf(node, group.id));
    }
    return templates;
  }

  async #scaleUp(seen: Observation, pods: readonly Pod[], templates: ReadonlyMap<string, Place>): Promise<void> {
    const nowMs = performance.now();
    const growable = seen.groups.flatMap(({ group, targetSize }): Growable[] => {
      const template = templates.get(group.id);
      const isBackedOff = (this.#backedOffUntilMs.get(group.id) ?? 0) > nowMs;
      if (template === undefined || isBackedOff) return [];
      return [{ id: group.id, room: group.maxSize - targetSize, template }];
    });
    const plan = planScaleUp(pods, growable);
    if (plan === undefined) return this.#say(`${pods.length} pod(s) pending, and no group can grow for them`);
    this.#say(`${pods.length} pod(s) pending: ${plan.id} grows by ${plan.delta} for ${plan.pods.length} of them`);
    try {
      await this.#provider.increaseSize(plan.id, plan.delta);
      this.#grewAtMs = nowMs;
      this.#observer.forget(plan.id);
    } catch (err) {
      this.#backOff(plan.id, String(err));
    }
  }

  #scaleDown({ groups, pods }: Observation, isGrowing: boolean): void {
    const { scaleDownUtilizationThreshold, scaleDownUnneededMs, scaleDownDelayAfterAddMs } = this.#settings;
    const candidates = groups.flatMap(({ nodes }) => nodes.filter((node) => isUsable(node) && isRemovable(node)));
    const occupancies = candidates.map((node) => occupied(node, pods));
    const idle = unneeded(occupancies, scaleDownUtilizationThreshold);
    const ripe = this.#unneeded.observe(idle, scaleDownUnneededMs);
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
      await this.#evictAll(name);
      await this.#provider.deleteNodes(group, [refOf(node)]);
      this.#say(`${name}: its deletion was accepted`);
    } catch (err) {
      this.#say(`${name} stays: ${String(err)}`);
      await this.#cluster.setToBeDeleted(name, false).catch((failure: unknown) => this.#say(String(failure)));
    }
  }

  /** Resolves when only pods of DaemonSets are left. */
  async #evictAll(nodeName: string): Promise<void> {
    for (;;) {
      const own = (await this.#cluster.pods()).filter((pod) => pod.spec?.nodeName === nodeName && isMovable(pod));
      if (own.length === 0) return;
      for (const pod of own) if (pod.metadata.deletionTimestamp === undefined) await this.#cluster.evict(pod);
      await new Promise((resolve) => void setTimeout(resolve, EVICTION_PAUSE_MS));
    }
  }

  async #takeBack(group: string, ids: readonly string[]): Promise<void> {
    this.#say(`${group}: taking back ${ids.join(', ')}`);
    try {
      await this.#provider.deleteNodes(group, ids.map(placeholder));
    } catch (err) {
      this.#say(`${group}: ${String(err)}`);
    }
    this.#observer.forget(group);
  }

  #backOff(group: string, why: string): void {
    this.#say(`${group} is left alone for a while: ${why}`);
    this.#backedOffUntilMs.set(group, performance.now() + this.#settings.nodeGroupBackoffMs);
  }
}

/** Does not say again what was said last. */
function onceEach(say: (line: string) => void): (line: string) => void {
  let last = '';
  return (line) => {
    if (line !== last) say(line);
    last = line;
  };
}

/** Pending pods that fit neither on nodes that are there nor on those that are coming. */
function unscheduledAmong({ groups, nodes, pods }: Observation, templates: ReadonlyMap<string, Place>): readonly Pod[] {
  const present = nodes.filter(isUsable).map((node) => occupied(node, pods).place);
  const coming = groups.flatMap(({ group, targetSize, nodes: own }) => {
    const template = templates.get(group.id);
    const count = template === undefined ? 0 : Math.max(0, targetSize - own.filter(isUsable).length);
    return Array.from({ length: count }, (_, i) => ({ ...template!, name: `coming-${group.id}-${i}` }));
  });
  return placeAll(pendingAmong(pods), [...present, ...coming]).left;
}

function isRemovable({ metadata, spec }: Node): boolean {
  const isDisabled = metadata.annotations?.['cluster-autoscaler.kubernetes.io/scale-down-disabled'] === 'true';
  const isLeaving = spec?.taints?.some(({ key }) => key === TO_BE_DELETED) === true;
  return !isDisabled && !isLeaving && metadata.deletionTimestamp === undefined;
}

/** A fresh node like this one: empty, under a name of its own, without the taints that say what becomes of a node. */
function templateOf({ metadata, spec, status }: Node, group: string): Place {
  const taints = (spec?.taints ?? []).filter(({ key }) => key !== TO_BE_DELETED && key !== NOT_READY);
  const name = `template-node-for-${group}`;
  const labels = { ...metadata.labels, 'kubernetes.io/hostname': name };
  return { name, labels, taints, free: resourcesOf(status?.allocatable) };
}
