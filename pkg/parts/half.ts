import { reachPresent, type CachedKind } from '../cache/barrier.ts';
import type { VolumeAttachment } from '../apis/wire.ts';
import type { Informer } from '../cache/lister.ts';
import { CONTROL } from '../gate/gate.ts';
import type { LeaderGate } from '../gate/leader-gate.ts';
import { GatedWriter } from '../kube/gated-writer.ts';
import type { Led } from '../process/leadership.ts';
import { singleTarget } from '../targets/single-target.ts';
import type { Targets } from '../targets/targets.ts';
import type { Base } from './base.ts';
import type { Caches } from './caches.ts';
import type { ControlCaches, TargetCaches } from './control-caches.ts';
import type { ClusterAccess } from './cluster.ts';
import { persistently } from './persistently.ts';
import { TargetReadiness } from './target-readiness.ts';

/** Something that works under a leadership and ends with it. */
export interface Stoppable {
  stop(graceMs: number): Promise<void>;
}

/** A writer to one cluster under one leadership; its answers go to that cluster's caches. */
export function writerOf({ hooks }: Base, access: ClusterAccess, caches: Caches, gate: LeaderGate): GatedWriter {
  return new GatedWriter({
    transport: access.transport,
    gate,
    cluster: access.cluster,
    observer: caches.ownWrites,
    intercept: hooks?.intercept,
  });
}

/** The target cluster as controllers of one leadership see it. */
export function targetsOf(base: Base, caches: TargetCaches | undefined, gate: LeaderGate): Targets {
  const { target } = base;
  if (target === undefined || caches === undefined) return singleTarget(undefined);
  return singleTarget({
    cluster: target.cluster,
    reader: target.reader,
    writer: writerOf(base, target, caches.caches, gate),
    nodes: caches.nodes,
    volumeAttachments: caches.volumeAttachments ?? noVolumeAttachments,
  });
}

/** In a process that drains nothing nobody asks for them. */
const noVolumeAttachments: Informer<VolumeAttachment> = {
  get: () => undefined,
  list: () => [],
  byIndex: () => [],
  onChange: () => undefined,
  hasSynced: true,
  resourceVersion: undefined,
  waitFor: () => Promise.resolve(),
  wrote: () => undefined,
  deleted: () => undefined,
};

/** All caches of a process. */
export function cachesOf(control: ControlCaches, target: TargetCaches | undefined): readonly Caches[] {
  return [control.caches, ...(target === undefined ? [] : [target.caches])];
}

/** Whether the target cluster of one leadership is ready. When both clusters are one there is only that one to wait for. */
export function readinessOf(base: Base, work: string, target: TargetCaches | undefined): TargetReadiness {
  const { clock, log, freezes, held } = base;
  const caches = target?.caches;
  const own = caches?.cluster === CONTROL ? undefined : caches;
  return new TargetReadiness({ clock, log, freezes, held, work, target: own });
}

/**
 * Work of one leadership: first the caches of the control cluster, and of the target when it can be reached, are brought up to
 * the present, then `wake` fills the queues and goes on to; at the end everything that may still mutate is stopped. `work` is
 * the name of the Lease.
 */
export function ledBy(
  { clock, log, held }: Pick<Base, 'clock' | 'log' | 'held'>,
  work: string,
  caches: readonly Caches[],
  readiness: TargetReadiness,
  wake: () => void,
  workers: readonly Stoppable[],
): Led {
  return {
    async begin(signal) {
      const hold = held.hold({ work, waitsFor: 'catch-up', of: CONTROL });
      const kinds = (): readonly CachedKind[] =>
        caches.filter(({ cluster }) => cluster === CONTROL).flatMap((one) => one.kinds);
      const reach = (s: AbortSignal): Promise<void> => reachPresent(kinds(), s);
      await persistently({ clock, log, hold }, 'catching up with the control cluster', reach, signal);
      await readiness.begin(signal);
      wake();
    },
    async end(graceMs) {
      await Promise.all(workers.map((worker) => worker.stop(graceMs)));
    },
  };
}
