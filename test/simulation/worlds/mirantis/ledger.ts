import {
  DELETION_POLICY_ANNOTATION,
  FRONT_END_REPLICAS_ANNOTATION,
  MAINTENANCE_ANNOTATION,
} from '../../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { controllerOf } from '../../../../pkg/apis/meta.ts';
import { type ClusterMachine, MIRANTIS_POOL_LABEL } from '../../../../pkg/worlds/mirantis/api/machine.ts';
import type { MachinePool } from '../../../../pkg/worlds/mirantis/api/pool.ts';
import type { SimVM } from '../../../../packages/providers/sim/vm.ts';
import { Bounds } from '../../world/bounds.ts';
import { watchCutOff } from '../../world/cut-off.ts';
import { Health } from '../../world/health.ts';
import { Leaders } from '../../world/leaders.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { isOf, objectsOf, valueOf } from './kinds.ts';

/** For so long a manager may not have seen what a user has said: a watch may be silent. */
const UNSEEN_MS = 90_000;
/** Nobody who is at work has so much to ask. */
const MOST_REQUESTS_A_SECOND = 2_000;
/** Policies by which pods are not waited for, or not for ever. */
const WEAK: ReadonlySet<string> = new Set(['unsafe', 'forced']);

/** Watches over Machines of Mirantis Container Cloud and those that were made for them, and finds what must never happen. */
export class MirantisLedger {
  readonly findings: string[] = [];
  vmsMade = 0;
  readonly health: Health;
  readonly #world: MachinesWorld;
  /** Of the pool. */
  readonly #bounds = new Bounds();
  /** Names of Machines that a user has deleted, or their Nodes. */
  readonly #asked = new Set<string>();
  /** When `delete` of a Machine was true last, by name: while it is, it is now. */
  readonly #wantedGoneMs = new Map<string, number>();
  /** The policy of deletions of Machines, by name. */
  readonly #policies = new Map<string, { readonly policy: string; readonly sinceMs: number }>();
  /** What a user has asked of the pool last. */
  #scaledTo: number | undefined;
  /** Sizes that somebody has chosen past the pool, and until when it may take them over. */
  readonly #chosenUntilMs = new Map<number, number>();
  /** When Machines might be taken into maintenance last. */
  #mayMaintainMs = -Infinity;

  constructor(world: MachinesWorld) {
    this.#world = world;
    this.health = new Health(world);
    world.cloud.onEvent((vm, event) => {
      if (event === 'created') this.vmsMade += 1;
      if (event === 'deleted') this.#lookAtVM(vm);
    });
    world.servers.control.objects.onChange((kind, { type, object, previous }) => {
      if (isOf(kind, 'machinepools')) {
        if (type === 'MODIFIED') this.#lookAtSize(object, previous);
        return this.#observePool(type === 'DELETED' ? undefined : object);
      }
      if (kind.plural === 'machinedeployments') return this.#noteSize(object as unknown as MachineDeployment);
      if (isOf(kind, 'clusters')) return this.#noteMaintenance();
      if (isOf(kind, 'machines')) return this.#lookAtFront(object, type === 'DELETED');
      if (kind.plural !== 'machines') return;
      if (type === 'DELETED') this.#lookAtEnd(object);
      else if (previous === undefined) this.#lookAtNumber();
      else this.#lookAtMachine(object as unknown as Machine, previous as unknown as Machine);
    });
    const leaders = new Leaders(world, (what) => this.find(what));
    watchCutOff(world, (what) => this.find(what));
    world.processes.onRequest(({ identity, method, path, sentAtMs }) => {
      if (leaders.hadLost(identity, sentAtMs))
        this.find(`${identity} asked for a change after another process led: ${method} ${path}`);
    });
  }

  get isHopeless(): boolean {
    return this.#world.processes.mostInASecond > MOST_REQUESTS_A_SECOND;
  }

  look(): void {
    this.#noteMaintenance();
    if (this.isHopeless) this.find(`${this.#world.processes.mostInASecond} requests were sent within a second`);
  }

  /** A user is about to delete a Machine, or its Node. */
  askedFor(name: string): void {
    this.#asked.add(name);
  }

  /** A user is about to choose the size of the pool. */
  scales(replicas: number): void {
    this.#scaledTo = replicas;
  }

  /** The same, past the pool. */
  resizes(replicas: number): void {
    this.#chosenUntilMs.set(replicas, Infinity);
    const [pool] = objectsOf(this.#world, 'machinepools');
    if (pool !== undefined) this.#bounds.observe(asDeployment(pool, replicas));
  }

  /** All is as asked for: only what is asked for from now on is a reason for what happens next. */
  settle(): void {
    const [pool] = objectsOf(this.#world, 'machinepools');
    this.#bounds.settle(pool && asDeployment(pool));
  }

  find(what: string): void {
    this.#world.trace.add(`finding ${what}`);
    this.findings.push(`${(this.#world.time.elapsedMs / 1_000).toFixed(0)} s: ${what}`);
  }

  get #nowMs(): number {
    return this.#world.time.elapsedMs;
  }

  /** A pool has the size that a user gives it, or what somebody has given its MachineDeployment. */
  #lookAtSize({ spec }: MachinePool, before: MachinePool | undefined): void {
    const size = Number(spec?.replicas);
    if (size === Number(before?.spec?.replicas) || size === this.#scaledTo) return;
    if ((this.#chosenUntilMs.get(size) ?? -Infinity) < this.#nowMs)
      this.find(`the pool was given ${size} replicas, and nobody asked for it: a user has asked for ${this.#scaledTo}`);
  }

  /** Where both sides agree, what was chosen before counts no more; what is on its way may still arrive. */
  #noteSize({ metadata, spec }: MachineDeployment): void {
    const [pool] = objectsOf(this.#world, 'machinepools');
    const size = String(spec?.replicas);
    if (metadata.annotations?.[FRONT_END_REPLICAS_ANNOTATION] !== size || String(pool?.spec?.replicas) !== size) return;
    for (const [chosen, untilMs] of this.#chosenUntilMs)
      this.#chosenUntilMs.set(chosen, Math.min(untilMs, this.#nowMs + UNSEEN_MS));
  }

  #observePool(pool: MachinePool | undefined): void {
    this.#bounds.observe(pool && asDeployment(pool));
  }

  #noteMaintenance(): void {
    const [cluster] = objectsOf(this.#world, 'clusters');
    if (cluster?.status?.providerStatus?.maintenance === true) this.#mayMaintainMs = this.#nowMs;
  }

  #lookAtFront(machine: ClusterMachine, isGone: boolean): void {
    const { name, uid } = machine.metadata;
    if (valueOf(machine)['delete'] === true) this.#wantedGoneMs.set(name, Infinity);
    else if (this.#wantedGoneMs.get(name) === Infinity) this.#wantedGoneMs.set(name, this.#nowMs);
    // Single Machines are not drained unless they say so.
    const { deletionPolicy = isOfPool(machine) ? 'drained' : 'unsafe' } = valueOf(machine);
    const policy = String(deletionPolicy);
    if (this.#policies.get(name)?.policy !== policy) this.#policies.set(name, { policy, sinceMs: this.#nowMs });
    if (!isGone) return;
    this.#wantedGoneMs.delete(name);
    this.#policies.delete(name);
    const owner = controllerOf(machine)?.uid;
    const ours = this.#world.machines.find((one) => controllerOf(one)?.uid === uid || one.metadata.uid === owner);
    if (ours !== undefined) this.find(`Machine ${name} has gone before the one that was made for it`);
  }

  #lookAtMachine(ours: Machine, before: Machine): void {
    const { deletionTimestamp, annotations = {} } = ours.metadata;
    if (deletionTimestamp !== undefined && before.metadata.deletionTimestamp === undefined)
      this.#lookAtDeletion(before);
    const hasBegun =
      annotations[MAINTENANCE_ANNOTATION] === 'true' &&
      before.metadata.annotations?.[MAINTENANCE_ANNOTATION] !== 'true';
    if (hasBegun && this.#nowMs - this.#mayMaintainMs > UNSEEN_MS)
      this.find(`Machine ${ours.metadata.name} was taken into maintenance, and its Cluster was not`);
  }

  /** A Machine goes when it is asked to, and one of a pool also where others take its place, or it is one too many. */
  #lookAtDeletion(machine: Machine): void {
    const { name } = machine.metadata;
    const wantedMs = this.#wantedGoneMs.get(name) ?? -Infinity;
    if (this.#asked.has(name) || this.#nowMs - wantedMs < UNSEEN_MS) return;
    if (!isOfPool(machine)) return this.find(`Machine ${name} was deleted although nobody asked for it`);
    if (!this.health.isHealthy(machine)) return;
    const isCounted = (one: Machine): boolean =>
      isOfPool(one) && (one.metadata.deletionTimestamp === undefined || this.#asked.has(one.metadata.name));
    const left = this.#world.machines.filter(
      (one) => isCounted(one) && (!this.#bounds.onlyRolls || this.health.hasJoined(one)),
    );
    if (left.length < this.#bounds.fewest)
      this.find(
        `healthy Machine ${name} of the pool was deleted: ${left.length} are left of at least ${this.#bounds.fewest}`,
      );
  }

  /** No more are made for the pool than are asked for. */
  #lookAtNumber(): void {
    const count = this.#world.machines.filter(
      (one) => isOfPool(one) && one.metadata.deletionTimestamp === undefined,
    ).length;
    if (count > this.#bounds.most)
      this.find(`there are ${count} Machines of the pool where at most ${this.#bounds.most} are asked for`);
  }

  /** A Machine leaves neither its VM nor its Node, unless it is forced to. */
  #lookAtEnd({ metadata: { name, uid, labels, annotations, deletionTimestamp } }: Pick<Machine, 'metadata'>): void {
    const { cloud, nodes } = this.#world;
    if (annotations?.[DELETION_POLICY_ANNOTATION] === 'forced') return;
    const vm = cloud.all().find(({ machineUID }) => machineUID === uid);
    if (vm !== undefined) this.find(`Machine ${name} has gone before its VM ${vm.providerID}`);
    const node = nodes.find((one) => one.metadata.name === labels?.['node']);
    if (node !== undefined && node.metadata.creationTimestamp < (deletionTimestamp ?? ''))
      this.find(`Machine ${name} has gone before its Node`);
  }

  /** A VM goes with its Machine, and without pods where the policy has them leave first. */
  #lookAtVM({ providerID, machineName }: SimVM): void {
    const machine = this.#world.machines.find((one) => one.metadata.name === machineName);
    if (machine === undefined || machine.spec?.providerID !== providerID) return;
    if (machine.metadata.deletionTimestamp === undefined)
      this.find(`VM ${providerID} was deleted although nobody deleted its Machine ${machineName}`);
    // What is said in the last moments need not have been seen; annotations of the Machine itself can weaken it, too.
    const { policy, sinceMs } = this.#policies.get(machineName) ?? { policy: 'unsafe', sinceMs: this.#nowMs };
    if (WEAK.has(policy) || this.#nowMs - sinceMs < UNSEEN_MS) return;
    const node = machine.metadata.labels?.['node'] ?? '';
    const left = this.#world.workload?.pods.filter(({ spec }) => spec?.nodeName === node) ?? [];
    if (left.length > 0 && this.health.isNodeReady(node))
      this.find(`VM ${providerID} was deleted although ${left.length} pods were still on it`);
  }
}

/** Whether a Machine is one of the pool's MachineDeployment. */
export function isOfPool({ metadata }: Pick<Machine, 'metadata'>): boolean {
  return metadata.labels?.[MIRANTIS_POOL_LABEL] !== undefined;
}

/** What the pool asks of its MachineDeployment: only what its servers are made from counts as its template. */
function asDeployment({ metadata, spec }: MachinePool, replicas = Number(spec?.replicas ?? 0)): MachineDeployment {
  const { flavor, image, availabilityZone } = valueOf({ spec: spec?.machineSpec ?? {} });
  const asked = {
    metadata,
    spec: {
      replicas,
      template: { flavor, image, availabilityZone },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    },
  };
  return asked as unknown as MachineDeployment; // As far as bounds look at it.
}
