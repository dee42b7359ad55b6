import { keyOf } from '../apis/meta.ts';
import type { Pod } from '../apis/wire.ts';
import type { BlockedPod, DrainProgress } from './drain.ts';

/** Keeps what a drain still waits for, and reports it whenever it has changed. */
export class DrainTracker {
  readonly #report: (progress: DrainProgress) => void;
  readonly #remaining = new Map<string, Pod>();
  readonly #blocked = new Map<string, BlockedPod>();

  constructor(report: (progress: DrainProgress) => void) {
    this.#report = report;
  }

  /** These pods have to leave. */
  expect(pods: readonly Pod[]): void {
    for (const pod of pods) this.#remaining.set(pod.metadata.uid, pod);
    if (pods.length > 0) this.#report(this.snapshot());
  }

  block(pod: Pod, reason: BlockedPod['reason'], detail: string): void {
    this.#set(pod.metadata.uid, { pod: keyOf(pod), reason, detail });
  }

  unblock(pod: Pod): void {
    this.#clear(pod.metadata.uid);
  }

  /** The volumes of this pod have yet to move; that may last longer than the pod. */
  blockVolumes(pod: Pod, reason: 'volume-detach' | 'volume-reattach', volumes: string): void {
    this.#set(volumesOf(pod), { pod: keyOf(pod), reason, detail: volumes });
  }

  unblockVolumes(pod: Pod): void {
    this.#clear(volumesOf(pod));
  }

  /** This pod needs no more waiting for. */
  finish(pod: Pod): void {
    this.#blocked.delete(pod.metadata.uid);
    if (this.#remaining.delete(pod.metadata.uid)) this.#report(this.snapshot());
  }

  /** What is left now; blocked pods by name. */
  snapshot(): DrainProgress {
    const blocked = [...this.#blocked.values()].toSorted((a, b) => (a.pod < b.pod ? -1 : 1));
    return { remainingPods: this.#remaining.size, blocked };
  }

  #set(key: string, blocked: BlockedPod): void {
    const before = this.#blocked.get(key);
    if (before?.reason === blocked.reason && before.detail === blocked.detail) return;
    this.#blocked.set(key, blocked);
    this.#report(this.snapshot());
  }

  #clear(key: string): void {
    if (this.#blocked.delete(key)) this.#report(this.snapshot());
  }
}

function volumesOf(pod: Pod): string {
  return `${pod.metadata.uid}/volumes`;
}
