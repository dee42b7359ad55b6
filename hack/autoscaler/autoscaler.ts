import type { Node, Pod } from '../../pkg/apis/wire.ts';
import { type CloudProvider, type Instance, placeholder, refOf } from './cloud-provider.ts';
import { type Cluster, isUsable, occupied, NOT_READY, pendingAmong, TO_BE_DELETED } from './cluster.ts';
import { type Observation, Observer, type ObserverSettings } from './observer.ts';
import { type Place, placeAll } from './placement.ts';
import { resourcesOf } from './resources.ts';
import { isMovable, unneeded } from './scale-down.ts';
import { type Growable, planScaleUp } from './scale-up.ts';
import { Since } from './since.ts';
import { ActivityLog } from './activity-log.ts';

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
  readonly #report: ActivityLog;
  readonly #observer: Observer;
  readonly #unneeded = new Since();
  readonly #unregistered = new Since();
  readonly #wrongSize = new Since();
  readonly #nowMs: () => number;
  /** What was asked for and is not all there yet, by group. */
  readonly #scaleUps = new Map<string, { readonly increase: number; readonly dueMs: number }>();
  /** Creations that are known to have failed. */
  #failed: ReadonlySet<string> = new Set();
  readonly #backedOffUntilMs = new Map<string, number>();
  readonly #removals = new Map<string, Promise<void>>();
  #grewAtMs = Number.NEGATIVE_INFINITY;
  #hasCleanedUp = false;

  constructor(deps: {
    provider: CloudProvider;
    cluster: Cluster;
    settings?: Partial<Settings>;
    say?: (line: string) => void;
    /** Of a clock that never goes back; real time by default. */
    nowMs?: () => number;
  }) {
    this.#provider = deps.provider;
    this.#cluster = deps.cluster;
    this.#settings = { ...QUICK, ...deps.settings };
    this.#report = new ActivityLog(deps.say ?? ((): void => undefined));
    this.#nowMs = deps.nowMs ?? ((): number => performance.now());
    this.#observer = new Observer(deps.provider, deps.cluster, this.#settings);
  }

  /** One loop. Rejects when the loop is lost: a refresh or a size that the server refused, an API server that failed. */
  async runOnce(): Promise<void> {
    await this.#provider.refresh();
    let seen = await this.#observe();
    if (!this.#hasCleanedUp) await this.#cleanUp(seen);
    await this.#revertScaleUps(seen);
    await this.#removeUnregistered(seen);
    if (await this.#deleteFailedCreations(seen)) seen = await this.#observe();
    if (await this.#fixSizes(seen)) return;
    const templates = await this.#templates(seen);
    const isAwaited = (group: string): boolean => this.#scaleUps.has(group) && !this.#isBackedOff(group);
    const unscheduled = unscheduledAmong(seen, templates, isAwaited);
    if (unscheduled.length > 0) await this.#scaleUp(seen, unscheduled, templates);
    this.#scaleDown(seen, unscheduled.length > 0);
  }

  /** Resolves when all removals that have begun have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals.values());
  }

  #observe(): Promise<Observation> {
    return this.#observer.observe(this.#nowMs(), (group) => this.#scaleUps.has(group));
  }

  /** Taints of one that died before: whether those nodes are needed is decided anew. */
  async #cleanUp({ groups }: Observation): Promise<void> {
    for (const node of groups.flatMap(({ nodes }) => nodes.filter(isLeaving))) {
      await this.#cluster.setToBeDeleted(node.metadata.name, false);
    }
    this.#hasCleanedUp = true;
  }

  /** What did not come in time is taken back as it was asked for, although part of it may have come (as of 1.36). */
  async #revertScaleUps({ groups }: Observation): Promise<void> {
    for (const { group, targetSize, nodes } of groups) {
      const scaleUp = this.#scaleUps.get(group.id);
      if (scaleUp === undefined) continue;
      const isComplete = targetSize <= nodes.filter(isUsable).length;
      if (!isComplete && this.#nowMs() <= scaleUp.dueMs) continue;
      this.#scaleUps.delete(group.id);
      if (isComplete) continue;
      this.#backOff(group.id, 'its nodes have not come in time');
      this.#report.did(`${group.id}: taking back the whole increase by ${scaleUp.increase}`);
      try {
        await this.#provider.decreaseTargetSize(group.id, -scaleUp.increase);
      } catch (err) {
        this.#report.saw(`${group.id}: ${String(err)}`);
      }
    }
  }

  /** Instances that have no Node after the time that provisioning may take are deleted, down to the minimum. */
  async #removeUnregistered({ groups, nodes }: Observation): Promise<void> {
    const missing = groups.flatMap(({ instances }) => unregisteredAmong(instances, nodes));
    const overdue = this.#unregistered.observe(missing, this.#settings.maxNodeProvisionMs, this.#nowMs());
    for (const { group, targetSize, instances } of groups) {
      const own = instances.map(({ id }) => id).filter((id) => overdue.includes(id));
      const removable = own.slice(0, Math.max(0, targetSize - group.minSize));
      if (removable.length > 0) await this.#takeBack(group.id, removable);
    }
  }

  /** What could not be created is taken back, whatever the minimum, and its group is left alone for a while if it was growing. */
  async #deleteFailedCreations({ groups }: Observation): Promise<boolean> {
    const known = this.#failed;
    this.#failed = new Set();
    let hasDeleted = false;
    for (const { group, instances } of groups) {
      const failed = instances.filter(({ state, error }) => state === 'creating' && error !== undefined);
      if (failed.length === 0) continue;
      const { error } = failed[0] ?? {};
      const ids = failed.map(({ id }) => id);
      this.#failed = new Set([...this.#failed, ...ids]);
      const news = ids.filter((id) => !known.has(id)).length;
      if (news > 0 && this.#scaleUps.has(group.id)) this.#backOff(group.id, `${error?.code}: ${error?.message}`);
      this.#expectFewer(group.id, news);
      if (await this.#takeBack(group.id, ids)) hasDeleted = true;
    }
    return hasDeleted;
  }

  #expectFewer(group: string, by: number): void {
    const scaleUp = this.#scaleUps.get(group);
    if (scaleUp === undefined) return;
    if (scaleUp.increase <= by) this.#scaleUps.delete(group);
    else this.#scaleUps.set(group, { ...scaleUp, increase: scaleUp.increase - by });
  }

  /** A target that nodes and known instances do not account for, for as long as provisioning may take, is set to what is there. */
  async #fixSizes({ groups, nodes: all }: Observation): Promise<boolean> {
    const wrong = groups.flatMap(({ group, targetSize, nodes, instances }) => {
      const unregistered = unregisteredAmong(instances, all).length;
      const isEmpty = nodes.length + unregistered === 0;
      if (isEmpty || nodes.length + unregistered >= targetSize) return [];
      return [{ id: group.id, targetSize, there: nodes.length, key: `${group.id} ${targetSize} ${nodes.length}` }];
    });
    const keys = wrong.map(({ key }) => key);
    const overdue = this.#wrongSize.observe(keys, this.#settings.maxNodeProvisionMs, this.#nowMs());
    const fixable = wrong.filter(({ key }) => overdue.includes(key));
    for (const { id, targetSize, there } of fixable) {
      this.#report.did(`${id}: size ${targetSize} is not met by ${there} node(s); lowering it`);
      await this.#provider.decreaseTargetSize(id, there - targetSize);
    }
    return fixable.length > 0;
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
    const growable = seen.groups.flatMap(({ group, targetSize }): Growable[] => {
      const template = templates.get(group.id);
      if (template === undefined || this.#isBackedOff(group.id)) return [];
      return [{ id: group.id, room: group.maxSize - targetSize, template }];
    });
    const plan = planScaleUp(pods, growable);
    if (plan === undefined) return this.#report.saw(`${pods.length} pod(s) pending, and no group can grow for them`);
    this.#report.did(
      `${pods.length} pod(s) pending: ${plan.id} grows by ${plan.delta} for ${plan.pods.length} of them`,
    );
    try {
      await this.#provider.increaseSize(plan.id, plan.delta);
      this.#grewAtMs = this.#nowMs();
      const increase = plan.delta + (this.#scaleUps.get(plan.id)?.increase ?? 0);
      this.#scaleUps.set(plan.id, { increase, dueMs: this.#grewAtMs + this.#settings.maxNodeProvisionMs });
    } catch (err) {
      this.#backOff(plan.id, String(err));
    }
  }

  #scaleDown({ groups, pods }: Observation, isGrowing: boolean): void {
    const { scaleDownUtilizationThreshold, scaleDownUnneededMs, scaleDownDelayAfterAddMs } = this.#settings;
    const candidates = groups.flatMap(({ nodes }) => nodes.filter((node) => isUsable(node) && isRemovable(node)));
    const occupancies = candidates.map((node) => occupied(node, pods));
    const idle = unneeded(occupancies, scaleDownUtilizationThreshold);
    const ripe = this.#unneeded.observe(idle, scaleDownUnneededMs, this.#nowMs());
    if (isGrowing || this.#nowMs() - this.#grewAtMs < scaleDownDelayAfterAddMs) return;

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
    this.#report.did(`${name} is not needed: evicting its pods`);
    try {
      await this.#cluster.setToBeDeleted(name, true);
      await this.#evictAll(name);
      await this.#provider.deleteNodes(group, [refOf(node)]);
      this.#report.did(`${name}: its deletion was accepted`);
    } catch (err) {
      this.#report.saw(`${name} stays: ${String(err)}`);
      await this.#cluster.setToBeDeleted(name, false).catch((failure: unknown) => this.#report.saw(String(failure)));
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

  /** Whether that was accepted. */
  async #takeBack(group: string, ids: readonly string[]): Promise<boolean> {
    this.#report.did(`${group}: taking back ${ids.join(', ')}`);
    this.#observer.forget(group);
    try {
      await this.#provider.deleteNodes(group, ids.map(placeholder));
      return true;
    } catch (err) {
      this.#report.saw(`${group}: ${String(err)}`);
      return false;
    }
  }

  #isBackedOff(group: string): boolean {
    return (this.#backedOffUntilMs.get(group) ?? Number.NEGATIVE_INFINITY) > this.#nowMs();
  }

  #backOff(group: string, why: string): void {
    this.#report.saw(`${group} is left alone for a while: ${why}`);
    this.#backedOffUntilMs.set(group, this.#nowMs() + this.#settings.nodeGroupBackoffMs);
  }
}

/** Instances that ought to have a Node, and have none: nobody expects one of those that could not be created. */
function unregisteredAmong(instances: readonly Instance[], nodes: readonly Node[]): readonly string[] {
  const registered = new Set(nodes.map(({ spec }) => spec?.providerID));
  return instances
    .filter(({ id, state, error }) => state !== 'deleting' && error === undefined && !registered.has(id))
    .map(({ id }) => id);
}

/**
 * Pending pods that fit neither on nodes that are there nor on those that are coming, in groups where that is awaited. Elsewhere it is not
 * counted on (as of 1.36): pods would wait for what may never come.
 */
function unscheduledAmong(
  { groups, nodes, pods }: Observation,
  templates: ReadonlyMap<string, Place>,
  isAwaited: (group: string) => boolean,
): readonly Pod[] {
  const present = nodes.filter(isUsable).map((node) => occupied(node, pods).place);
  const coming = groups.flatMap(({ group, targetSize, nodes: own }) => {
    const template = templates.get(group.id);
    const isCounted = template !== undefined && isAwaited(group.id);
    const count = !isCounted ? 0 : Math.max(0, targetSize - own.filter(isUsable).length);
    return Array.from({ length: count }, (_, i) => ({ ...template!, name: `coming-${group.id}-${i}` }));
  });
  return placeAll(pendingAmong(pods), [...present, ...coming]).left;
}

function isRemovable(node: Node): boolean {
  const isDisabled = node.metadata.annotations?.['cluster-autoscaler.kubernetes.io/scale-down-disabled'] === 'true';
  return !isDisabled && !isLeaving(node) && node.metadata.deletionTimestamp === undefined;
}

function isLeaving({ spec }: Node): boolean {
  return spec?.taints?.some(({ key }) => key === TO_BE_DELETED) === true;
}

/** A fresh node like this one: empty, under a name of its own, without the taints that say what becomes of a node. */
function templateOf({ metadata, spec, status }: Node, group: string): Place {
  const taints = (spec?.taints ?? []).filter(({ key }) => key !== TO_BE_DELETED && key !== NOT_READY);
  const name = `template-node-for-${group}`;
  const labels = { ...metadata.labels, 'kubernetes.io/hostname': name };
  return { name, labels, taints, free: resourcesOf(status?.allocatable) };
}
