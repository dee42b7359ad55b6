import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { isNotFound } from '../../kube/errors.ts';
import { machines } from '../../kube/resource.ts';
import type { MachineSetParts } from './parts.ts';

/**
 * Names under which Machines of `set` were asked for and that no cache has shown: their POST may have happened, or may yet
 * happen. After minutes without a sign a live read decides.
 */
export async function unseenCreations(
  parts: Pick<MachineSetParts, 'machines' | 'expectations' | 'reader'>,
  set: MachineSet,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const namespace = set.metadata.namespace ?? '';
  const owner = set.metadata.uid;
  const isCached = (name: string): boolean => parts.machines.get(`${namespace}/${name}`) !== undefined;
  for (;;) {
    const expectation = parts.expectations.check(owner, isCached);
    if (expectation.kind === 'satisfied') return [];
    if (expectation.kind === 'waiting') return expectation.names;
    for (const name of expectation.names) {
      try {
        parts.machines.wrote(await parts.reader.get(machines, { namespace, name }, { signal }));
      } catch (err) {
        if (!isNotFound(err)) throw err;
      }
      parts.expectations.settled(owner, name);
    }
  }
}
