import PQueue from 'p-queue';

import { fromTimestamp, toMicroTimestamp, toTimestamp, type Clock } from '../../../pkg/base/clock/clock.ts';
import type { Reader, Writer } from '../../../pkg/kube/client/client.ts';
import { ignoreNotFound, isAlreadyExists, isConflict, isNotFound } from '../../../pkg/kube/client/errors.ts';
import { mergePatch, strategicPatch } from '../../../pkg/kube/client/patch.ts';
import { leases, nodes } from '../../../pkg/kube/client/resource.ts';
import type { Logger } from '../../../pkg/base/log/logger.ts';
import type { CloudEvent, SimCloud } from './cloud.ts';
import { conditionsOf, simNode, type NodeReadiness, type Registration } from './node.ts';
import { canonicalIDOf, nodeNameOf, type SimVM } from './vm.ts';

export interface NodeKeeperDeps {
  readonly cloud: SimCloud;
  readonly reader: Reader;
  readonly writer: Writer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Renew a Lease for each Node, as kubelets do: needed where a kube-controller-manager watches over them. */
  readonly leases: boolean;
  readonly registration: Registration;
}

const RETRY_MS = 1_000;
const RENEW_MS = 10_000;
/** A Lease that was renewed longer ago than this may have made the node lifecycle controller call its Node Unknown, or do so yet. */
const GAP_MS = 30_000;
/** So long it is looked whether it has. */
const CHECK_MS = 120_000;
/** A Node whose VM was deleted in order is Unknown after that, if nobody has deleted it; in clusters it takes 40 s. */
const SILENT_MS = 10_000;
const LEASE_NAMESPACE = 'kube-node-lease';

/**
 * Plays the kubelets: a running VM becomes a ready Node when its time to join has passed. A VM that is switched off or vanishes
 * makes its Node Unknown at once; a Node whose VM was deleted in order has a few seconds in which to be deleted. Without Leases it
 * writes nothing while nothing happens. With them, after an outage in which no Lease could be renewed, Nodes that were
 * called Unknown meanwhile say again that they are ready.
 */
export class NodeKeeper {
  readonly #deps: NodeKeeperDeps;
  readonly #requests = new PQueue({ concurrency: 16 });
  readonly #stopped: AbortSignal;
  /** Nodes that were told to be otherwise than ready, and how. */
  readonly #unready = new Map<string, NodeReadiness>();
  /** Until when the Node of a VM is looked at, by provider id; wall time. */
  readonly #checkUntilMs = new Map<string, number>();

  /** Works from now until `signal` is aborted; VMs that exist already join too, and Nodes of those that are gone fall silent. */
  constructor(deps: NodeKeeperDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#stopped = signal;
    for (const vm of deps.cloud.all()) this.#expectJoin(vm);
    for (const vm of deps.cloud.gone) this.#expectSilence(vm);
    deps.cloud.onEvent((vm, event) => this.#onEvent(vm, event));
    if (deps.leases) deps.clock.schedule(RENEW_MS, () => this.#renewAll());
  }

  /** Makes a Node say that it is ready or not. Resolves when it does; rejects with ApiError. */
  async setReadiness(nodeName: string, readiness: NodeReadiness): Promise<void> {
    if (readiness === 'ready') this.#unready.delete(nodeName);
    else this.#unready.set(nodeName, readiness);
    await this.#say(nodeName, readiness);
  }

  async #say(nodeName: string, readiness: NodeReadiness): Promise<void> {
    const { reader, writer, clock } = this.#deps;
    const node = await reader.get(nodes, { name: nodeName });
    const conditions = conditionsOf(readiness, toTimestamp(clock.now()));
    await writer.patch('change', nodes, { name: nodeName }, strategicPatch(node, { status: { conditions } }, 'status'));
  }

  /** Starts the kubelets of the VMs of that name anew, which register when there is no Node. */
  restart(nodeName: string): void {
    for (const vm of this.#deps.cloud.named(nodeName)) {
      if (this.#hasJoined(vm)) this.#enqueue(vm, () => this.#join(vm));
    }
  }

  /** The kubelet of a VM starts anew after its host was renamed: it registers as another Node, and what was its Node falls silent. */
  rename({ providerID }: SimVM, hostname: string): void {
    const { cloud, clock } = this.#deps;
    const before = cloud.get(providerID);
    const after = cloud.rename(providerID, hostname);
    if (before === undefined || after === undefined || !this.#hasJoined(after)) return;
    this.#unready.delete(nodeNameOf(before));
    this.#enqueue(after, () => this.#join(after));
    clock.schedule(SILENT_MS, () =>
      this.#enqueue(before, () => this.#say(nodeNameOf(before), 'unknown').catch(ignoreNotFound)),
    );
  }

  /** Nodes say again how they are where the server says otherwise, because it was set back. */
  repost(): void {
    for (const vm of this.#deps.cloud.all()) {
      if (!this.#hasJoined(vm)) continue;
      this.#enqueue(vm, () => this.#correct(vm, (is, meant) => is !== meant).catch(ignoreNotFound));
    }
  }

  /** Deletes a Node, as a cloud controller manager does. */
  async remove(nodeName: string): Promise<void> {
    const { reader, writer } = this.#deps;
    const { metadata } = await reader.get(nodes, { name: nodeName });
    await writer.delete('destroy', nodes, { name: nodeName }, { uid: metadata.uid });
  }

  #onEvent(vm: SimVM, event: CloudEvent): void {
    if (event === 'deleted' || event === 'vanished') this.#forget(vm);
    if (event === 'created') this.#expectJoin(vm);
    else if (event === 'deleted') this.#expectSilence(vm);
    else if (event === 'vanished' || (event === 'changed' && vm.power === 'off')) this.#report(vm, 'unknown');
    else if (event === 'changed' && this.#hasJoined(vm)) this.#report(vm, 'ready');
  }

  #expectJoin(vm: SimVM): void {
    const { clock } = this.#deps;
    if (vm.joinsAtMs === undefined) return;
    clock.schedule(vm.joinsAtMs - clock.now(), () => this.#enqueue(vm, () => this.#join(vm)));
  }

  #expectSilence(vm: SimVM): void {
    const { clock, cloud } = this.#deps;
    clock.schedule(SILENT_MS, () => {
      if (cloud.named(nodeNameOf(vm)).length === 0) this.#report(vm, 'unknown');
    });
  }

  #forget(vm: SimVM): void {
    this.#checkUntilMs.delete(vm.providerID);
    this.#unready.delete(nodeNameOf(vm));
  }

  #hasJoined(vm: SimVM): boolean {
    return vm.joinsAtMs !== undefined && vm.joinsAtMs <= this.#deps.clock.now();
  }

  #report(vm: SimVM, readiness: NodeReadiness): void {
    if (readiness === 'ready') this.#unready.delete(nodeNameOf(vm));
    this.#enqueue(vm, async () => {
      try {
        await this.#say(nodeNameOf(vm), readiness);
      } catch (err) {
        // It never joined, or another VM of that name took its place.
        if (!isNotFound(err) && !isConflict(err)) throw err;
      }
    });
  }

  async #join(vm: SimVM): Promise<void> {
    const { cloud, writer, clock, registration } = this.#deps;
    const isOn = (): boolean => cloud.get(vm.providerID)?.power === 'on';
    if (!isOn()) return;
    try {
      await writer.create('create', nodes, simNode(vm, toTimestamp(clock.now()), registration));
      this.#unready.delete(nodeNameOf(vm));
    } catch (err) {
      if (!isAlreadyExists(err)) throw err;
      await this.setReadiness(nodeNameOf(vm), 'ready');
    }
    // It ended while there was no Node yet that could have said so.
    if (!isOn()) this.#report(vm, 'unknown');
  }

  /** Runs a request, and again after a second as long as it fails. */
  #enqueue(vm: SimVM, run: () => Promise<void>): void {
    const { clock, log } = this.#deps;
    if (this.#stopped.aborted) return;
    void this.#requests.add(async () => {
      try {
        await run();
      } catch (err) {
        log.debug({ node: nodeNameOf(vm), err }, 'request of a simulated node failed');
        clock.schedule(RETRY_MS, () => this.#enqueue(vm, run));
      }
    });
  }

  #renewAll(): void {
    const { cloud, clock } = this.#deps;
    if (this.#stopped.aborted) return;
    for (const vm of cloud.all()) {
      if (vm.power === 'on' && this.#hasJoined(vm)) void this.#requests.add(() => this.#renew(vm));
    }
    clock.schedule(RENEW_MS, () => this.#renewAll());
  }

  async #renew(vm: SimVM): Promise<void> {
    const { reader, writer, clock, log } = this.#deps;
    const name = nodeNameOf(vm);
    const ref = { namespace: LEASE_NAMESPACE, name };
    const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime: toMicroTimestamp(clock.now()) };
    try {
      const lease = await reader.get(leases, ref);
      await writer.patch('change', leases, ref, mergePatch(lease, { spec }));
      await this.#repost(vm, fromTimestamp(lease.spec?.renewTime) ?? 0);
    } catch (err) {
      if (!isNotFound(err)) return log.debug({ node: nodeNameOf(vm), err }, 'renewing a node lease failed');
      await writer.create('create', leases, { metadata: ref, spec }).catch((cause: unknown) => {
        log.debug({ node: nodeNameOf(vm), err: cause }, 'creating a node lease failed');
      });
    }
  }

  /** After a gap in the renewals: what the node lifecycle controller said of a Node that works is taken back. */
  async #repost(vm: SimVM, renewedMs: number): Promise<void> {
    const nowMs = this.#deps.clock.now();
    if (nowMs - renewedMs > GAP_MS) this.#checkUntilMs.set(vm.providerID, nowMs + CHECK_MS);
    const untilMs = this.#checkUntilMs.get(vm.providerID);
    if (untilMs === undefined) return;
    if (untilMs <= nowMs) this.#checkUntilMs.delete(vm.providerID);

    await this.#correct(vm, (is, meant) => is === 'unknown' && meant === 'ready');
  }

  async #correct(vm: SimVM, isWrong: (is: NodeReadiness, meant: NodeReadiness) => boolean): Promise<void> {
    const { cloud, reader } = this.#deps;
    const { providerID } = vm;
    const name = nodeNameOf(vm);
    const { spec, status } = await reader.get(nodes, { name });
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    const is = ready === 'True' ? 'ready' : ready === 'False' ? 'not-ready' : 'unknown';
    const meant = cloud.get(providerID)?.power === 'on' ? (this.#unready.get(name) ?? 'ready') : 'unknown';
    const isIts = canonicalIDOf(spec?.providerID ?? '') === providerID;
    if (isIts && isWrong(is, meant)) await this.#say(name, meant);
  }
}
