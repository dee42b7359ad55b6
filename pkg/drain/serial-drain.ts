import type { Pod } from '../apis/wire.ts';
import type { Logger } from '../base/log/logger.ts';
import type { Waiters } from '../base/clock/waiters.ts';
import type { DrainRequest } from './drain.ts';
import type { Evictor } from './evictor.ts';
import type { PodFeed } from './node-pods.ts';
import { graceMsOf } from './pods.ts';
import type { DrainTracker } from './drain-tracker.ts';
import { isAttached, isAttachedElsewhere, type TrackedVolume, type VolumeLookup } from './volumes.ts';

export interface SerialDrainDeps {
  readonly request: DrainRequest;
  readonly evictor: Evictor;
  readonly feed: PodFeed;
  readonly progress: DrainTracker;
  readonly volumes: VolumeLookup;
  /** Told of every change of the target's Nodes and VolumeAttachments. */
  readonly targetChanges: Waiters;
  readonly log: Logger;
}

/**
 * Sends pods with claims away one after the other, so that the attacher moves few volumes at a time and no pod waits for
 * a volume behind those of all others: each pod's volumes first leave this node, then arrive elsewhere. A volume that
 * does neither in time delays the next pod, and is given up with a warning. Pods that a budget holds back come again in
 * the next round.
 */
export class SerialDrain {
  readonly #deps: SerialDrainDeps;

  constructor(deps: SerialDrainDeps) {
    this.#deps = deps;
  }

  /** Resolves when all `pods` are gone; rejects only with the signal's reason or a bug. */
  async run(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    if (pods.length === 0) return;
    const { evictor, progress } = this.#deps;
    for (const pod of pods) progress.block(pod, 'turn', '');
    await Promise.all([this.#rounds(pods, signal), ...pods.map((pod) => evictor.untilGone(pod, signal))]);
  }

  async #rounds(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { evictor, feed, volumes, progress } = this.#deps;
    const namesByPod = await volumes.volumesByPod(pods, signal);
    let waiting = pods;
    while (waiting.length > 0) {
      const held: Pod[] = [];
      let retryInMs = 0;
      for (const pod of waiting) {
        if (!evictor.isLeaving(pod)) progress.unblock(pod);
        const tracked = await this.#attachedVolumes(namesByPod.get(pod.metadata.uid) ?? [], signal);
        const asked = await evictor.tryEvict(pod, signal);
        if (asked.kind === 'leaving') {
          await this.#moveVolumes(pod, tracked, signal);
          continue;
        }
        held.push(pod);
        retryInMs = Math.max(retryInMs, asked.retryInMs);
      }
      waiting = held;
      if (held.length > 0) await feed.until(() => held.every((pod) => evictor.isLeaving(pod)), signal, retryInMs);
    }
  }

  /** Those that hang on the node now: a volume that is never attached (a network file system) is not waited for. */
  async #attachedVolumes(names: readonly string[], signal: AbortSignal): Promise<readonly TrackedVolume[]> {
    const tracked = await Promise.all(names.map((name) => this.#deps.volumes.track(name, signal)));
    return tracked.filter((volume) => this.#isHere(volume));
  }

  async #moveVolumes(pod: Pod, volumes: readonly TrackedVolume[], signal: AbortSignal): Promise<void> {
    if (volumes.length === 0) return;
    const { request, targetChanges, log } = this.#deps;
    const { target, nodeName, pvDetachTimeoutMs, pvReattachTimeoutMs } = request;
    const names = volumes.map(({ name }) => name).join(', ');

    this.#deps.progress.blockVolumes(pod, 'volume-detach', names);
    const isDetached = (): boolean => !volumes.some((volume) => this.#isHere(volume));
    if (!(await targetChanges.until(isDetached, signal, graceMsOf(pod) + pvDetachTimeoutMs))) {
      log.warn({ node: nodeName, volumes: names }, 'stopped waiting for volumes to be detached');
      this.#deps.progress.unblockVolumes(pod);
      return;
    }

    this.#deps.progress.blockVolumes(pod, 'volume-reattach', names);
    const isElsewhere = (volume: TrackedVolume): boolean =>
      isAttachedElsewhere(nodeName, target.volumeAttachments.byIndex('persistentVolume', volume.name));
    if (!(await targetChanges.until(() => volumes.every(isElsewhere), signal, pvReattachTimeoutMs))) {
      log.warn({ node: nodeName, volumes: names }, 'stopped waiting for volumes to be attached to other nodes');
    }
    this.#deps.progress.unblockVolumes(pod);
  }

  #isHere(volume: TrackedVolume): boolean {
    const { target, nodeName } = this.#deps.request;
    return isAttached(volume, target.nodes.get(nodeName), target.volumeAttachments.byIndex('node', nodeName));
  }
}
