import type { Pod } from '../../../pkg/apis/wire.ts';
import { fromTimestamp, toTimestamp, type Clock } from '../../../pkg/base/clock/clock.ts';
import type { Writer } from '../../../pkg/kube/client/client.ts';
import { isConflict, isNotFound } from '../../../pkg/kube/client/errors.ts';
import type { ListWatch } from '../../../pkg/kube/client/list-watch.ts';
import { strategicPatch } from '../../../pkg/kube/client/patch.ts';
import { pods } from '../../../pkg/kube/client/resource.ts';
import type { Logger } from '../../../pkg/base/log/logger.ts';
import type { SimCloud } from './cloud.ts';

export interface PodKeeperDeps {
  readonly cloud: SimCloud;
  /** All pods that are bound to a node. */
  readonly source: ListWatch<Pod>;
  readonly writer: Writer;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long containers take to stop, at most the pod's grace; undefined: the whole grace. */
  readonly stopMs: number | undefined;
}

const RETRY_MS = 1_000;

/**
 * Plays the kubelets towards pods: one that is bound to a Node of a running VM runs and is ready; one that is being deleted
 * stops within its grace and is then removed. Pods of VMs that are off or gone stay as they are.
 */
export class PodKeeper {
  readonly #deps: PodKeeperDeps;
  readonly #signal: AbortSignal;
  /** Pods that are being stopped, by UID. */
  readonly #stopping = new Set<string>();
  /** Ends the present watch, so that all pods are looked at again. */
  #relist = new AbortController();

  constructor(deps: PodKeeperDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    deps.cloud.onEvent((_vm, event) => {
      if (event === 'changed') this.#relist.abort();
    });
  }

  /** Works until the signal is aborted. */
  async run(): Promise<void> {
    const { clock, log } = this.#deps;
    while (!this.#signal.aborted) {
      this.#relist = new AbortController();
      const signal = AbortSignal.any([this.#signal, this.#relist.signal]);
      try {
        await this.#follow(signal);
      } catch (err) {
        if (this.#signal.aborted) return;
        if (signal.aborted) continue;
        log.debug({ err }, 'watching pods of simulated nodes failed');
        await clock.sleep(RETRY_MS, this.#signal).catch(() => undefined);
      }
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { source } = this.#deps;
    const { items, metadata } = await source.list({ signal });
    for (const pod of items) this.#check(pod);
    for await (const event of source.watch({ signal, resourceVersion: metadata.resourceVersion })) {
      if (event.type === 'ERROR') return;
      if (event.type === 'ADDED' || event.type === 'MODIFIED') this.#check(event.object);
    }
  }

  #check(pod: Pod): void {
    const { cloud, clock, stopMs } = this.#deps;
    const nodeName = pod.spec?.nodeName;
    if (nodeName === undefined || !cloud.named(nodeName).some((vm) => vm.power === 'on')) return;

    const deadlineMs = fromTimestamp(pod.metadata.deletionTimestamp);
    if (deadlineMs === undefined) {
      if (pod.status?.phase === 'Pending') this.#send(pod, 'starting', () => this.#start(pod));
      return;
    }
    if (this.#stopping.has(pod.metadata.uid)) return;
    this.#stopping.add(pod.metadata.uid);
    const graceMs = Math.max(0, deadlineMs - clock.now());
    clock.schedule(Math.min(stopMs ?? graceMs, graceMs), () => this.#send(pod, 'removing', () => this.#remove(pod)));
  }

  async #start(pod: Pod): Promise<void> {
    const { writer, clock } = this.#deps;
    const now = toTimestamp(clock.now());
    const condition = (type: string) => ({ type, status: 'True', lastTransitionTime: now });
    const status = {
      phase: 'Running',
      startTime: now,
      conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(condition),
      containerStatuses: pod.spec?.containers?.map(({ name, image = '' }) => ({
        name,
        image,
        imageID: image,
        ready: true,
        started: true,
        restartCount: 0,
        state: { running: { startedAt: now } },
      })),
    };
    await writer.patch('change', pods, pod.metadata, strategicPatch(pod, { status }, 'status'));
  }

  async #remove(pod: Pod): Promise<void> {
    const { uid } = pod.metadata;
    this.#stopping.delete(uid);
    await this.#deps.writer.delete('destroy', pods, pod.metadata, { uid }, { gracePeriodSeconds: 0 });
  }

  /** The pod may be gone or replaced meanwhile; anything else is put right by the next look. */
  #send(pod: Pod, what: string, run: () => Promise<void>): void {
    if (this.#signal.aborted) return;
    run().catch((err: unknown) => {
      if (isNotFound(err) || isConflict(err)) return;
      this.#deps.log.debug({ pod: pod.metadata.name, what, err }, 'request for a simulated pod failed');
      this.#relist.abort();
    });
  }
}
