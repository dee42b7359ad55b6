import type { Pod } from '../apis/wire.ts';
import type { Target } from '../kube/targets/targets.ts';
import type { PodRule } from './drain.ts';
import type { DrainerDeps } from './drainer.ts';
import { hasClaim, isDrained } from './pods.ts';
import { VolumeLookup, type TrackedVolume } from './volumes.ts';

/** The volumes of the pods that a drain leaves on a Node. Throws ApiError. */
export type KeptVolumes = (
  target: Target,
  nodeName: string,
  ruleOf: (pod: Pod) => PodRule,
  signal: AbortSignal,
) => Promise<readonly TrackedVolume[]>;

/** Makes the look for volumes that nobody has to wait for after a drain: their pods stay. */
export function createKeptVolumes({ podsOf, clock, log }: Pick<DrainerDeps, 'clock' | 'log' | 'podsOf'>): KeptVolumes {
  return async (target, nodeName, ruleOf, signal) => {
    const { items } = await podsOf(target, nodeName).list({ signal });
    const staying = items.filter((pod) => hasClaim(pod) && (!isDrained(pod) || ruleOf(pod).behavior === 'stays'));
    const lookup = new VolumeLookup({ reader: target.reader, clock, log, volumeIDOf: undefined });
    const names = await lookup.volumesOf(staying, signal);
    return await Promise.all(names.map((name) => lookup.track(name, signal)));
  };
}
