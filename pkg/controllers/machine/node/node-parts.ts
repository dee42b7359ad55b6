import { isDenial } from '../../../kube/client/errors.ts';
import { reasonFor, type NodeRefusal } from '../../machine-facts/node-refusal.ts';

/** Tries to apply the whole change of a Node but for these entries. */
export type Attempt = (without: ReadonlySet<string>) => Promise<void>;

/**
 * Applies what can be applied of a change that was refused as a whole: of `marks` and then of `entries` as many as the API server
 * takes, found by halves. Resolves with what it refuses. Throws what is no refusal.
 */
export async function applyInParts(
  marks: readonly string[],
  entries: readonly string[],
  nodeName: string,
  attempt: Attempt,
): Promise<readonly NodeRefusal[]> {
  const refused: NodeRefusal[] = [];
  const without = new Set([...marks, ...entries]);
  const add = async (some: readonly string[]): Promise<void> => {
    for (const entry of some) without.delete(entry);
    try {
      await attempt(without);
    } catch (err) {
      if (!isDenial(err)) throw err;
      for (const entry of some) without.add(entry);
      const half = some.length / 2;
      if (some.length === 1) refused.push({ what: some[0] ?? '', why: reasonFor(err, nodeName) });
      else for (const part of [some.slice(0, half), some.slice(half)]) await add(part);
    }
  };
  for (const some of [marks, entries]) if (some.length > 0) await add(some);
  return refused;
}
