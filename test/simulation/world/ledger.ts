import { TEMPLATE_HASH_LABEL, UPDATE_RESULT_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { Node } from '../../../pkg/apis/wire.ts';
import { fromTimestamp } from '../../../pkg/base/clock/clock.ts';
import { canonicalIDOf, nodeNameOf } from '../../../packages/providers/sim/vm.ts';
import { isUninitialized } from '../../../packages/providers/sim/node.ts';
import type { SimVM } from '../../../packages/providers/sim/vm.ts';
import { at, equal } from '../api-server/json.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import { Bounds } from './bounds.ts';
import { watchCutOff } from './cut-off.ts';
import { Health, HEALTH_TIMEOUT_MS } from './health.ts';
import { Leaders } from './leaders.ts';
import type { MachinesWorld } from './machines-world.ts';
import { isPrepared, preparedSinceMs, Wishes } from './wishes.ts';

/** How long two VMs may stand for one Machine: until the next list of VMs has found the second, and its grace is over. */
const DOUBLED_MS = 20 * 60_000;
/** Machines that fall ill within this time have one reason, if most do, and it is known for a while. */
const ZONE_BURST_MS = 240_000;
const ZONE_SEEN_MS = 60_000;
const ZONE_SHARE = 0.6;
/** Within this time a call has come to its end. */
const CALL_MS = 120_000;
/** Nobody who is at work has so much to ask. */
const MOST_REQUESTS_A_SECOND = 2_000;
const REPLICAS = ['spec', 'replicas'];
/** So long ago something may have been decided that is done now. */
const DECIDED_MS = 5_000;
/** So long it takes at least until a new Machine runs. */
const JOIN_MS = 5_000;
/** Of the Machines of worlds, less what a look may take: in so short a time none that has come in place of another is given up. */
const CREATION_TIMEOUT_MS = 590_000;
/** Timestamps are whole seconds. */
const TIMESTAMP_MS = 1_000;
/** Of the Machines of worlds, less what a look may take. */
const DRAIN_TIMEOUT_MS = 295_000;

/** Watches over a world: notes what was asked for, and finds what must never happen. */
export class Ledger {
  readonly findings: string[] = [];
  vmsMade = 0;
  readonly #world: MachinesWorld;
  readonly #bounds = new Bounds();
  readonly health: Health;
  readonly #wishes: Wishes;
  /** Who has asked last, and when, that the pod of a volume leaves a Node, by the name of the attachment. */
  readonly #sentAway = new Map<string, { readonly by: string; readonly atMs: number }>();
  /** When DeleteMachine was called last, by the name of the Machine, and when the cluster was set back. */
  readonly #calledMs = new Map<string, number>();
  #setBackMs = -Infinity;
  #targetSetBackMs = -Infinity;
  /**
   * By the UID of a Machine that was forgotten, who was there when the cluster was set back, and has to hold its VM; undefined once that was
   * released. Who comes later does not know it, whatever is set back then.
   */
  #holders: ReadonlyMap<string, object | undefined> = new Map();
  /** Also of pods that are gone. */
  readonly #nodeOfPod = new Map<string, string>();
  #isSetBack = false;
  /** UIDs of Machines that were given up while they had a VM. */
  readonly #failed = new Set<string>();
  /** When the last one was. */
  #givenUpMs = -Infinity;
  /** When the last one was whose Node was ready. */
  #notSetUpMs = -Infinity;
  /** Names of Nodes that users have cordoned, and their UIDs. */
  readonly #cordons = new Map<string, string>();
  readonly #asked = new Set<string>();
  readonly #askedSets = new Set<string>();
  /** When the replicas of a MachineSet were lowered last, by its UID. */
  readonly #loweredMs = new Map<string, number>();
  /** When the last Machine went with a Node that a cloud controller manager had deleted. */
  #turnMs = -Infinity;
  readonly #named = new Set<string>();
  readonly #doubledSince = new Map<string, number>();

  constructor(world: MachinesWorld) {
    this.#world = world;
    this.#bounds.settle(world.pool);
    this.health = new Health(world);
    this.#wishes = new Wishes(world);
    world.cloud.onEvent((vm, event) => {
      if (event === 'created') this.vmsMade += 1;
      if (event === 'deleted') this.#lookAtVM(vm);
    });
    world.servers.control.objects.onChange(({ plural }, { type, object, previous }) => {
      if (object.metadata.namespace !== world.namespace) return;
      if (plural === 'machinedeployments') this.#bounds.observe(object as unknown as MachineDeployment);
      if (plural === 'machinesets' && Number(at(object, REPLICAS)) < Number(at(previous, REPLICAS)))
        this.#loweredMs.set(object.metadata.uid, world.time.elapsedMs);
      if (plural !== 'machines') return;
      if (previous === undefined) {
        this.#lookAtNumber();
        this.#lookAtRecreation(object as unknown as Machine);
      } else if (type === 'DELETED') this.#lookAtEnd(object as unknown as Machine);
      else if (isGoing(object) && !isGoing(previous)) this.#lookAtMachine(previous);
      else {
        this.#lookAtFailure(object as unknown as Machine, previous as unknown as Machine);
        this.#lookAtJoining(object as unknown as Machine, previous as unknown as Machine);
      }
    });
    world.servers.target.objects.onRestore(() => this.#cordons.clear());
    const leaders = new Leaders(world, (what) => this.find(what));
    watchCutOff(world, (what) => this.find(what));
    world.processes.onRequest((request) => {
      if (!world.concerns(request)) return;
      const { identity, method, path, sentAtMs } = request;
      if (leaders.hadLost(identity, sentAtMs))
        this.find(`${identity} asked for a change after another process led: ${method} ${path}`);
      if (path.endsWith('/eviction')) this.#noteEviction(path, identity);
      if (method === 'DeleteMachine') this.#calledMs.set(path, sentAtMs);
      if (method === 'DELETE' && /\/pods\/[^/]+$/.test(path)) this.#lookAtPod(path);
    });
    world.servers.target.objects.onChange(({ plural }, { type, object, previous }) => {
      if (plural === 'nodes' && type !== 'DELETED') this.#lookAtCordon(object, previous);
      if (plural === 'nodes' && type === 'DELETED' && world.isOwn(object)) this.#lookAtNode(object);
      if (plural === 'pods') this.#nodeOfPod.set(object.metadata.name, String(at(object, ['spec', 'nodeName'])));
    });
  }

  /** Whether the template has changed since all was as asked for. */
  get hasRolled(): boolean {
    return this.#bounds.hasRolled;
  }

  /** The control cluster was set back. */
  setBack(): void {
    this.#bounds.observe(this.#world.pool);
    const { forgotten, manager } = this.#world;
    const known = this.#holders;
    this.#holders = new Map([...forgotten].map((uid) => [uid, known.has(uid) ? known.get(uid) : manager]));
    this.#isSetBack = true;
    this.#setBackMs = this.#world.time.elapsedMs;
  }

  /** The target cluster was set back. */
  targetSetBack(): void {
    this.#targetSetBackMs = this.#world.time.epochMs;
  }

  /** Somebody has said that VMs of forgotten Machines may go. */
  released(): void {
    this.#holders = new Map([...this.#holders.keys()].map((uid) => [uid, undefined]));
  }

  /** A user is about to delete a Machine, or its Node. */
  askedFor(name: string): void {
    this.#asked.add(name);
  }

  /** A user is about to delete a MachineSet, with all of its Machines. */
  askedForSet(uid: string): void {
    this.#askedSets.add(uid);
  }

  /** Somebody else is about to make a MachineSet larger or smaller. */
  resizedBy(count: number): void {
    this.#bounds.resize(count);
  }

  /** Whether a Node is cordoned because a user has said so. */
  isCordoned(nodeName: string): boolean {
    return this.#cordons.has(nodeName);
  }

  isAskedFor(name: string): boolean {
    return this.#asked.has(name);
  }

  /** An autoscaler named a Machine, and its pool shrinks for it: nothing takes its place. */
  named(name: string): void {
    this.#named.add(name);
  }

  /** All is as asked for: only what is asked for from now on is a reason for what happens next. */
  settle(): void {
    this.#isSetBack = false;
    this.#bounds.settle(this.#world.pool);
  }

  /** Notes something that must not be. */
  find(what: string): void {
    const where = this.#world.lease === undefined ? '' : `${this.#world.namespace}: `;
    this.#world.trace.add(`finding ${where}${what}`);
    this.findings.push(`${(this.#world.time.elapsedMs / 1_000).toFixed(0)} s: ${where}${what}`);
  }

  /** Whether nothing else can be learned from this world: something goes round in it. */
  get isHopeless(): boolean {
    return this.#world.processes.mostInASecond > MOST_REQUESTS_A_SECOND;
  }

  /** To be called now and then: looks at what takes too long. */
  look(): void {
    const { cloud, time, processes } = this.#world;
    if (this.isHopeless) this.find(`${processes.mostInASecond} requests were sent within a second`);
    const counts = new Map<string, number>();
    for (const { machineName } of cloud.all()) counts.set(machineName, (counts.get(machineName) ?? 0) + 1);
    for (const name of this.#doubledSince.keys()) if ((counts.get(name) ?? 0) < 2) this.#doubledSince.delete(name);
    for (const [name, count] of counts) {
      if (count < 2) continue;
      const sinceMs = this.#doubledSince.get(name) ?? time.elapsedMs;
      this.#doubledSince.set(name, sinceMs);
      if (time.elapsedMs - sinceMs <= DOUBLED_MS) continue;
      this.find(`Machine ${name} has ${count} VMs for more than ${DOUBLED_MS / 60_000} minutes`);
      this.#doubledSince.set(name, Infinity);
    }
  }

  /** Of healthy Machines that nobody named, only as many go as were asked for. */
  #lookAtMachine(before: StoredObject): void {
    const machine = before as unknown as Machine;
    const { name } = machine.metadata;
    // It is drained and deleted as its user asks; a request for it that was taken back before has no effect.
    const isOfAskedSet = machine.metadata.ownerReferences?.some(({ uid }) => this.#askedSets.has(uid)) === true;
    if (isPrepared(machine) || isOfAskedSet) this.#asked.add(name);
    if (this.#asked.has(name) || this.#named.has(name)) return;
    this.#lookAtKept(machine);
    if (this.#world.deletedNodes.has(machine.metadata.labels?.['node'] ?? '')) return this.#lookAtTurn(machine);
    if (!this.health.isHealthy(machine)) return;
    this.#lookAtUpdated(machine);
    // What users delete comes on top: nobody has to have seen it yet.
    const counted = this.#world.machines.filter((one) => !isLone(one));
    const left = counted.filter((one) => !isGoing(one) || this.#asked.has(one.metadata.name));
    const { fewest, onlyRolls } = this.#bounds;
    // Where only the template has changed, one that has never joined does not take the place of one that works. One that does not may go first.
    const isRolled =
      onlyRolls && machine.status?.currentStatus?.phase === 'Running' && !this.#joinedWhenChosen(machine);
    const { length } = isRolled ? left.filter((one) => this.health.hasJoined(one)) : left;
    if (length >= fewest) return;
    this.find(
      `healthy Machine ${name} was deleted although nobody asked for it: ${length} are left of at least ${fewest}`,
    );
  }

  /** A machine that is updated in place, and has not failed, stays. */
  #lookAtUpdated(machine: Machine): void {
    const hasFailed = ['Failed', 'InPlaceUpdateFailed'].includes(phase(machine) ?? '');
    if (this.#isSetBack || hasFailed || !this.#bounds.onlyUpdates) return;
    this.find(`Machine ${machine.metadata.name} was deleted although machines are updated in place`);
  }

  /** Nobody deletes what users want to keep, unless it is one too many, or another template is asked for. */
  #lookAtKept(machine: Machine): void {
    const { hasRolled, hasResized } = this.#bounds;
    if (hasRolled || hasResized || this.#isSetBack) return;
    const { name, labels } = machine.metadata;
    if (this.#wishes.isPreserved(machine)) this.find(`Machine ${name} was deleted although it is preserved`);
    const hasNode = this.#world.nodes.some((node) => node.metadata.name === labels?.['node'] && !isGoing(node));
    // Of one that is down it is not known whether it failed before.
    if (!hasNode || phase(machine) === 'Failed' || !this.#wishes.isMaintained(machine)) return;
    this.find(`Machine ${name} was deleted although it is in maintenance`);
  }

  /** Whether it has just joined, after its MachineSet was told to have fewer, as one of those that did not work. */
  #joinedWhenChosen(machine: Machine): boolean {
    const joinedMs = this.health.joinedMs(machine) ?? -Infinity;
    if (this.#world.time.elapsedMs - joinedMs > JOIN_MS) return false;
    return (
      machine.metadata.ownerReferences?.some(({ uid }) => (this.#loweredMs.get(uid) ?? Infinity) < joinedMs) ?? false
    );
  }

  /**
   * Machines whose Nodes a cloud controller manager has deleted go one after the other, as long as others wait, and none while most are ill
   * together.
   */
  #lookAtTurn(machine: Machine): void {
    const { cloud, machines, nodes, time } = this.#world;
    const { hasRolled, hasResized } = this.#bounds;
    if (hasRolled || hasResized || this.#isSetBack || phase(machine) === 'Failed') return;
    if (cloud.get(canonicalIDOf(machine.spec?.providerID ?? ''))?.power !== 'on') return;
    const { uid, name } = machine.metadata;
    const others = machines.filter((one) => one.metadata.uid !== uid && !isGoing(one));
    const going = new Set(nodes.filter(isGoing).map(({ metadata }) => metadata.name));
    // One that has been ill for a moment was not seen when that was decided.
    const isSeen = ({ status }: Machine): boolean =>
      time.epochMs - (fromTimestamp(status?.currentStatus?.lastUpdateTime) ?? 0) > DECIDED_MS;
    const waiting = others.find(
      (one) => (phase(one) === 'Unknown' && isSeen(one)) || going.has(one.metadata.labels?.['node'] ?? ''),
    );
    if (waiting !== undefined && time.elapsedMs - this.#turnMs < HEALTH_TIMEOUT_MS)
      this.find(
        `Machine ${name} was deleted with its Node soon after another one, while ${waiting.metadata.name} waits`,
      );
    this.#turnMs = time.elapsedMs;
    if (phase(machine) === 'Unknown') this.#lookAtZone(machine, others, 'deleted with its Node');
  }

  /** Where the provider says nothing that is not true, a Machine leaves neither its VM nor its Node. */
  #lookAtEnd({ metadata: { name, uid, labels, deletionTimestamp } }: Machine): void {
    const { isHonest, cloud, nodes } = this.#world;
    if (!isHonest) return;
    const vm = cloud.all().find(({ machineUID }) => machineUID === uid);
    if (vm !== undefined) this.find(`Machine ${name} has gone before its VM ${vm.providerID}`);
    const node = nodes.find((one) => one.metadata.name === labels?.['node']);
    if (node === undefined || node.metadata.creationTimestamp >= (deletionTimestamp ?? '')) return;
    // One that was deleted may have come back.
    if (this.#targetSetBackMs >= (fromTimestamp(deletionTimestamp) ?? 0)) return;
    this.find(`Machine ${name} has gone before its Node`);
  }

  /** No more are made than are asked for. Those of a backup may come on top. */
  #lookAtNumber(): void {
    if (this.#isSetBack) return;
    const count = this.#world.machines.filter((one) => !isGoing(one) && !isLone(one)).length;
    const { most } = this.#bounds;
    if (count > most) this.find(`there are ${count} Machines where at most ${most} are asked for`);
  }

  /** Where all machines are recreated, the new ones come when the last old one goes. */
  #lookAtRecreation({ metadata: { name, labels } }: Machine): void {
    const { pool, machines, sets } = this.#world;
    if (this.#isSetBack || !this.#wishes.isRecreated) return;
    const hash = labels?.[TEMPLATE_HASH_LABEL];
    const set = sets.find(({ metadata }) => metadata.labels?.[TEMPLATE_HASH_LABEL] === hash);
    if (!equal(set?.spec.template?.metadata?.annotations, pool?.spec.template?.metadata?.annotations)) return;
    const old = machines.find((one) => one.metadata.labels?.[TEMPLATE_HASH_LABEL] !== hash && !isGoing(one));
    if (old !== undefined) this.find(`Machine ${name} was made while ${old.metadata.name} of another template stays`);
  }

  /** Machines with a VM are given up one after the other, and none where most have fallen ill together. */
  #lookAtFailure(machine: Machine, before: Machine): void {
    if (phase(machine) !== 'Failed' || phase(before) !== 'Unknown' || this.#world.isActing) return;
    const { cloud, machines, time } = this.#world;
    const { uid, name } = machine.metadata;
    if (cloud.get(machine.spec?.providerID ?? '')?.power !== 'on') return;
    this.#failed.add(uid);
    if (this.#wishes.isMaintained(machine)) this.find(`Machine ${name} was given up although it is in maintenance`);
    const others = machines.filter((one) => one.metadata.uid !== uid && !isGoing(one));
    const failed = others.find((one) => this.#failed.has(one.metadata.uid) && phase(one) === 'Failed');
    // Another one cannot have taken the place of the last in so short a time.
    const isTooSoon = time.elapsedMs - this.#givenUpMs < JOIN_MS && !this.#bounds.hasResized;
    if (failed !== undefined || isTooSoon) {
      this.find(`Machine ${name} was given up beside ${failed?.metadata.name ?? 'another one'}`);
    }
    this.#givenUpMs = time.elapsedMs;
    this.#lookAtZone(before, others, 'given up');
  }

  /** Nothing is replaced where most machines have fallen ill together. */
  #lookAtZone(machine: Machine, others: readonly Machine[], what: string): void {
    const { time } = this.#world;
    const sinceMs = (one: Machine): number => fromTimestamp(one.status?.currentStatus?.lastUpdateTime) ?? 0;
    const isIll = (one: Machine): boolean =>
      phase(one) === 'Unknown' &&
      Math.abs(sinceMs(one) - sinceMs(machine)) < ZONE_BURST_MS &&
      time.epochMs - sinceMs(one) > ZONE_SEEN_MS;
    const ill = others.filter(isIll).length + 1;
    const joined = others.filter((one) => ['Running', 'Unknown'].includes(phase(one) ?? '')).length + 1;
    if (joined >= 3 && ill >= ZONE_SHARE * joined) {
      this.find(`Machine ${machine.metadata.name} was ${what} although ${ill} of ${joined} fell ill together`);
    }
  }

  /** A machine runs at first with a VM and a Node that were initialized, and those whose Nodes only lack that are given up one after the other. */
  #lookAtJoining(machine: Machine, before: Machine): void {
    if (!['Pending', 'CrashLoopBackOff'].includes(phase(before) ?? '')) return;
    const { cloud, nodes, time } = this.#world;
    const { name, labels } = machine.metadata;
    const vm = cloud.get(canonicalIDOf(machine.spec?.providerID ?? ''));
    const node = nodes.find(({ metadata }) => metadata.name === labels?.['node']);
    if (vm?.power !== 'on' || node === undefined) return;
    if (phase(machine) === 'Running') {
      if (!vm.initialized) this.find(`Machine ${name} runs although its VM ${vm.providerID} is not initialized`);
      if (isUninitialized(node))
        this.find(`Machine ${name} runs although its Node ${node.metadata.name} is not initialized`);
      // What came in place of the last one is set up: new ones help, and the next may go that is not.
      const createdMs = (fromTimestamp(machine.metadata.creationTimestamp) ?? 0) - (time.epochMs - time.elapsedMs);
      if (createdMs > this.#notSetUpMs - TIMESTAMP_MS) this.#notSetUpMs = -Infinity;
    }
    if (phase(machine) !== 'Failed' || !this.health.isReady(machine)) return;
    if (time.elapsedMs - this.#notSetUpMs < CREATION_TIMEOUT_MS)
      this.find(`Machine ${name} was given up soon after another one whose Node was ready, too`);
    this.#notSetUpMs = time.elapsedMs;
  }

  /** No VM goes before its Machine; nor one whose Machine was forgotten, as long as the process lives that knew it. */
  #lookAtVM({ providerID, machineName, machineUID }: SimVM): void {
    // A call that was under way when the cluster was set back cannot be taken back.
    const calledMs = this.#calledMs.get(machineName) ?? Infinity;
    if (calledMs < this.#setBackMs && this.#world.time.elapsedMs - calledMs < CALL_MS) return;
    const { leader, manager } = this.#world;
    if (machineUID !== undefined && this.#holders.get(machineUID) === manager) {
      this.find(`VM ${providerID} was deleted although its Machine ${machineName} was only forgotten`);
    }
    const machine = this.#machineOf(machineName);
    if (machine !== undefined && machine.spec?.providerID === providerID && this.#mustDrain(machine)) {
      const node = machine.metadata.labels?.['node'];
      const left = this.#world.workload?.pods.filter(({ spec }) => spec?.nodeName === node) ?? [];
      if (left.length > 0) this.find(`VM ${providerID} was deleted although ${left.length} pods were still on it`);
      // Of a deletion that was forgotten nobody knows, and by the next one other pods may have used the volume there, and gone by themselves.
      const sinceMs = fromTimestamp(machine.metadata.deletionTimestamp) ?? Infinity;
      const attached = this.#world.workload?.volumes.attachments.filter(({ spec, metadata: { name } }) => {
        const sent = this.#sentAway.get(name);
        return spec.nodeName === node && sent?.by === leader.identity && sent.atMs >= sinceMs;
      });
      if (attached !== undefined && attached.length > 0) {
        this.find(`VM ${providerID} was deleted although ${attached.length} volumes were still attached to it`);
      }
    }
    if (machine === undefined || isGoing(machine) || machine.spec?.providerID !== providerID) return;
    this.find(`VM ${providerID} was deleted although nobody deleted its Machine ${machineName}`);
  }

  /** Pods are evicted, which asks their budgets, as long as there is time. */
  #lookAtPod(path: string): void {
    const name = path.split('/').at(-1) ?? '';
    const nodeName = this.#nodeOfPod.get(name);
    const machine = this.#world.machines.find(({ metadata }) => metadata.labels?.['node'] === nodeName);
    if (machine === undefined || !this.#mustDrain(machine)) return;
    this.find(`pod ${name} was deleted, past its budget, although the drain had time`);
  }

  /** Who sends a pod away knows that its volume has to follow. */
  #noteEviction(path: string, identity: string): void {
    const name = path.split('/').at(-2);
    const { workload } = this.#world;
    const pod = workload?.pods.find(({ metadata }) => metadata.name === name);
    const attachment = pod === undefined ? undefined : workload?.volumes.attachmentOf(pod);
    if (attachment !== undefined) this.#sentAway.set(attachment, { by: identity, atMs: this.#world.time.epochMs });
  }

  /** Whether pods have to leave a Machine before its VM goes. */
  #mustDrain(machine: Machine): boolean {
    const nowMs = this.#world.time.epochMs;
    const { lastUpdateTime } = machine.status?.currentStatus ?? {};
    // One that is preserved is drained when it fails, and one in maintenance without end.
    const drainedMs = phase(machine) === 'Failed' ? fromTimestamp(lastUpdateTime) : undefined;
    const deletedMs = fromTimestamp(machine.metadata.deletionTimestamp);
    const sinceMs = Math.min(
      deletedMs ?? drainedMs ?? nowMs,
      preparedSinceMs(machine) ?? Infinity,
      this.#selectedMs(machine),
    );
    if (!this.health.isReady(machine) || this.#wishes.isWeak(machine, sinceMs)) return false;
    return nowMs - sinceMs < DRAIN_TIMEOUT_MS || this.#wishes.isGraceful(machine, sinceMs);
  }

  /** Since when its Node has been drained for an update in place, in ms since the epoch. */
  #selectedMs({ metadata }: Machine): number {
    const node = this.#world.nodes.find(({ metadata: { name } }) => name === metadata.labels?.['node']);
    const update = node?.status?.conditions?.find(({ type }) => type === 'InPlaceUpdate');
    return update?.reason === 'SelectedForUpdate' ? (fromTimestamp(update.lastTransitionTime) ?? Infinity) : Infinity;
  }

  /** A Node that a user has cordoned stays so until a user says otherwise, or its update in place has succeeded: then it takes pods again, as with the original. */
  #lookAtCordon(node: StoredObject, previous: StoredObject | undefined): void {
    const { name, uid } = node.metadata;
    const [is, was] = [node, previous].map((one) => at(one, ['spec', 'unschedulable']) === true);
    if (is === was) return;
    if (this.#world.isActing && is === true) this.#cordons.set(name, uid);
    else if (this.#cordons.get(name) === uid && !this.#world.isActing && is === false && !isGivenBack(node, previous))
      this.find(`Node ${name} was uncordoned although a user has cordoned it`);
    if (is === false) this.#cordons.delete(name);
  }

  /** No Node goes before its Machine, while its VM is there. */
  #lookAtNode({ metadata: { name }, spec: { providerID: shown } = {} }: Node): void {
    const isIts = ({ metadata, spec }: Machine): boolean =>
      metadata.labels?.['node'] === name || canonicalIDOf(spec?.providerID ?? '-') === canonicalIDOf(shown ?? '');
    const machine = this.#world.machines.find(isIts);
    if (machine === undefined || isGoing(machine) || this.#asked.has(name)) return;
    const { providerID } = machine.spec ?? {};
    const vm = this.#world.cloud.all().find((one) => one.providerID === providerID);
    if (vm === undefined) return;
    // Its kubelet has registered under another name, and still works: this is only what was its Node.
    if (nodeNameOf(vm) !== name) return;
    // That other name the Machine does not know, and a cluster that does not answer cannot be told, so that nothing keeps what users delete.
    const isKnown = machine.metadata.labels?.['node'] === name;
    if (this.#world.isActing && !(isKnown && this.#world.downSinceMs('target') === Infinity)) return;
    this.find(`Node ${name} was deleted although nobody deleted its Machine ${machine.metadata.name}`);
  }

  #machineOf(name: string): Machine | undefined {
    return this.#world.machines.find(({ metadata }) => metadata.name === name);
  }
}

/** Made by a user, not by the pool. */
export const LONE_LABEL = 'example.com/lone';

function isLone({ metadata }: Machine): boolean {
  return metadata.labels?.[LONE_LABEL] !== undefined;
}

function isGoing({ metadata }: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function phase({ status }: Machine): string | undefined {
  return status?.currentStatus?.phase;
}

/** Whether a Node is given back that was updated in place: the result goes in the same write. */
function isGivenBack(node: StoredObject, previous: StoredObject | undefined): boolean {
  const [result, before] = [node, previous].map((one) => at(one, ['metadata', 'labels', UPDATE_RESULT_LABEL]));
  return before === 'successful' && result === undefined;
}
