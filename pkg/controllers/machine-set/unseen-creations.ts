import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../apis/meta.ts';
import { ignoreNotFound } from '../../kube/client/errors.ts';
import { machines } from '../../kube/client/resource.ts';
import type { MachineSetDeps } from './step.ts';

/** When to look again whether a POST without an answer has left a Machine behind. */
export const UNSEEN_CHECK_MS = 5_000;

/**
 * Names under which Machines of `set` were asked for and that no cache has shown: their POST may have happened, or may yet
 * happen. After minutes without a sign a live read decides.
 */
export async function unseenCreations(
  deps: Pick<MachineSetDeps, 'machines' | 'expectations' | 'reader'>,
  set: MachineSet,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const namespace = set.metadata.namespace ?? '';
  const owner = set.metadata.uid;
  const isCached = (name: string): boolean => deps.machines.get(`${namespace}/${name}`) !== undefined;
  for (;;) {
    const expectation = deps.expectations.check(owner, isCached);
    if (expectation.kind === 'satisfied') return [];
    if (expectation.kind === 'waiting') return expectation.names;
    for (const name of expectation.names) {
      const live = await deps.reader.get(machines, { namespace, name }, { signal }).catch(ignoreNotFound);
      if (live !== undefined) deps.machines.wrote(live);
      deps.expectations.settled(owner, name);
    }
  }
}

/**
 * From now on a creation is settled as soon as the cache shows its Machine, however briefly: one whose answer was lost may
 * come and go between two passes that look, and would then hold back the deletion of its set.
 */
export function settleWhenObserved({
  machines: cache,
  expectations,
}: Pick<MachineSetDeps, 'machines' | 'expectations'>): void {
  cache.onChange((_old, current) => {
    if (current === undefined) return;
    const owner = controllerOf(current);
    if (owner !== undefined) expectations.settled(owner.uid, current.metadata.name);
  });
}
