import { effectOf } from './effects.ts';
import type { MachinesWorld } from './machines-world.ts';

/** A look at the history of a cluster is good for two seconds, and may take ten. */
const KNOWN_MS = 12_000;
/**
 * Until then a cluster that does not answer has an outage, also for a process that stands still for as long as it may: a minute from probe to
 * probe, half a minute for probes to fail, and how long two of them take.
 */
const OUTAGE_MS = 180_000;

type WatchedWorld = Pick<MachinesWorld, 'concerns' | 'downSinceMs' | 'machines'> & {
  readonly processes: Pick<MachinesWorld['processes'], 'onRequest'>;
};

/**
 * Finds what processes destroy or give up while a cluster that has to be known for it does not answer: nobody knows what it stores; and what they
 * change while that lasts. Requests for it say so, also those that reach nobody.
 */
export function watchCutOff(world: WatchedWorld, find: (what: string) => void): void {
  world.processes.onRequest((request) => {
    if (!world.concerns(request)) return;
    const effect = effectOf(request, world.machines);
    if (effect === undefined) return;
    const { destroys, on, what } = effect;
    for (const cluster of on) {
      const forMs = request.sentAtMs - world.downSinceMs(cluster);
      if (forMs <= (destroys ? KNOWN_MS : OUTAGE_MS)) continue;
      const { method, path } = request;
      const seconds = Math.round(forMs / 1_000);
      find(`${what}: ${method} ${path} was sent when the ${cluster} cluster had not answered for ${seconds} s`);
      return;
    }
  });
}
