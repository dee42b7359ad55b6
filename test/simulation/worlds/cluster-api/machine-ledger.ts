import type { ClusterAPICluster } from '../../../../pkg/worlds/cluster-api/api/cluster.ts';
import { CLUSTER_API_GROUP, PAUSED_ANNOTATION } from '../../../../pkg/worlds/cluster-api/api/keys.ts';
import type { ClusterAPIMachine } from '../../../../pkg/worlds/cluster-api/api/machine.ts';
import { fromTimestamp } from '../../../../pkg/base/clock/clock.ts';
import type { Kind } from '../../api-server/kinds.ts';
import type { StoredObject } from '../../api-server/stored-object.ts';
import { watchCutOff } from '../../world/cut-off.ts';
import { Health } from '../../world/health.ts';
import { Leaders } from '../../world/leaders.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { DRAIN_TIMEOUT_S } from './kinds.ts';

/** For so long a manager may not have seen what a user has said: a watch may be silent. */
const UNSEEN_MS = 90_000;
/** How late a timeout is noticed. */
const LATE_MS = 5_000;
const HOOK = /^pre-(drain|terminate)\.delete\.hook\./;
/** Nobody who is at work has so much to ask. */
const MOST_REQUESTS_A_SECOND = 2_000;

/** Watches over Machines of Cluster API: notes since when what holds them, and finds what must never happen. */
export class MachineLedger {
  readonly findings: string[] = [];
  vmsMade = 0;
  readonly #world: MachinesWorld;
  readonly #health: Health;
  /** Since when what holds a Machine is there: its hooks and its pause, by name of the Machine and key. */
  readonly #heldSinceMs = new Map<string, ReadonlyMap<string, number>>();
  #clusterPausedMs: number | undefined;
  /** Names of Machines whose infrastructure their creator deletes. */
  readonly #givenUp = new Set<string>();

  constructor(world: MachinesWorld) {
    this.#world = world;
    this.#health = new Health(world);
    world.cloud.onEvent((_vm, event) => {
      if (event === 'created') this.vmsMade += 1;
    });
    world.servers.control.objects.onChange((kind, { type, object, previous }) => {
      if (object.metadata.namespace !== world.namespace) return;
      if (kind.plural === 'simmachines' && previous !== undefined) this.#lookAtInfrastructure(object, previous);
      if (kind.group !== CLUSTER_API_GROUP) return;
      if (kind.plural === 'clusters') this.#noteCluster(object);
      if (kind.plural !== 'machines') return;
      if (type === 'DELETED') this.#lookAtEnd(object);
      else this.#noteMachine(object, previous);
    });
    const leaders = new Leaders(world, (what) => this.find(what));
    watchCutOff(world, (what) => this.find(what));
    world.processes.onRequest((request) => {
      if (!world.concerns(request)) return;
      const { identity, method, path, sentAtMs } = request;
      if (leaders.hadLost(identity, sentAtMs))
        this.find(`${identity} asked for a change after another process led: ${method} ${path}`);
    });
  }

  get machines(): readonly ClusterAPIMachine[] {
    return this.#list(
      (kind) => kind.plural === 'machines' && kind.group === CLUSTER_API_GROUP,
    ) as unknown[] as ClusterAPIMachine[];
  }

  get infrastructure(): readonly StoredObject[] {
    return this.#list((kind) => kind.plural === 'simmachines');
  }

  get isHopeless(): boolean {
    return this.#world.processes.mostInASecond > MOST_REQUESTS_A_SECOND;
  }

  look(): void {
    if (this.isHopeless) this.find(`${this.#world.processes.mostInASecond} requests were sent within a second`);
  }

  /** Its creator is about to delete the infrastructure of a Machine that is gone. */
  givesUp(name: string): void {
    this.#givenUp.add(name);
  }

  find(what: string): void {
    this.#world.trace.add(`finding ${what}`);
    this.findings.push(`${(this.#world.time.elapsedMs / 1_000).toFixed(0)} s: ${what}`);
  }

  #list(isMeant: (kind: Kind) => boolean): readonly StoredObject[] {
    const { kinds, objects } = this.#world.servers.control;
    const all = kinds.filter(isMeant).flatMap((kind) => objects.of(kind).list());
    return all.filter(({ metadata }) => metadata.namespace === this.#world.namespace);
  }

  #noteCluster({ spec }: ClusterAPICluster): void {
    const isPaused = spec?.paused === true;
    this.#clusterPausedMs = isPaused ? (this.#clusterPausedMs ?? this.#world.time.elapsedMs) : undefined;
  }

  #noteMachine({ metadata, spec, status }: ClusterAPIMachine, before: ClusterAPIMachine | undefined): void {
    const { name, annotations = {} } = metadata;
    const known = this.#heldSinceMs.get(name);
    const keys = Object.keys(annotations).filter((key) => key === PAUSED_ANNOTATION || HOOK.test(key));
    this.#heldSinceMs.set(name, new Map(keys.map((key) => [key, known?.get(key) ?? this.#world.time.elapsedMs])));
    const node = status?.nodeRef?.name;
    if (node === undefined || node === before?.status?.nodeRef?.name) return;
    const found = this.#world.nodes.find((one) => one.metadata.name === node);
    if (found !== undefined && found.spec?.providerID !== spec?.providerID)
      this.find(`Machine ${name} of ${spec?.providerID} names Node ${node}, which is of ${found.spec?.providerID}`);
  }

  /** Infrastructure goes only with its Machine, and only when nothing holds that. */
  #lookAtInfrastructure({ metadata: { name, deletionTimestamp } }: StoredObject, previous: StoredObject): void {
    if (deletionTimestamp === undefined || previous.metadata.deletionTimestamp !== undefined) return;
    if (this.#givenUp.has(name)) return;
    const machine = this.machines.find((one) => one.metadata.name === name);
    if (machine?.metadata.deletionTimestamp === undefined) {
      this.find(`the infrastructure of ${name} was deleted although nobody deleted its Machine`);
      return;
    }
    const nowMs = this.#world.time.elapsedMs;
    const holds = [
      ...(this.#heldSinceMs.get(name) ?? []),
      ['pause of its Cluster', this.#clusterPausedMs ?? Infinity] as const,
    ];
    for (const [key, sinceMs] of holds) {
      if (nowMs - sinceMs > UNSEEN_MS) this.find(`the infrastructure of ${name} was deleted although ${key} holds it`);
    }
    const node = machine.status?.nodeRef?.name ?? '';
    const pods = this.#world.workload?.pods.filter(({ spec }) => spec?.nodeName === node) ?? [];
    const drainMs = fromTimestamp(machine.status?.deletion?.nodeDrainStartTime) ?? this.#world.time.epochMs;
    const isInTime = this.#world.time.epochMs - drainMs < DRAIN_TIMEOUT_S * 1_000 - LATE_MS;
    if (pods.length > 0 && isInTime && this.#health.isNodeReady(node))
      this.find(`the infrastructure of ${name} was deleted although ${pods.length} pods were still on it`);
  }

  /** A Machine goes last. */
  #lookAtEnd({ metadata: { name } }: StoredObject): void {
    this.#heldSinceMs.delete(name);
    const left = this.infrastructure.find(({ metadata }) => metadata.name === name);
    // What no manager has taken over yet is its creator's.
    if (left?.metadata.ownerReferences !== undefined) this.find(`Machine ${name} has gone before its infrastructure`);
    const vm = this.#world.cloud.all().find(({ machineName }) => machineName === name);
    if (vm !== undefined) this.find(`Machine ${name} has gone before its VM ${vm.providerID}`);
  }
}
