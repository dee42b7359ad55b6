import { copyOf, equal, isMembers, type Members } from '../json.ts';

/** How a list is merged: entry by entry, told apart by a member, or as a set of plain values. Lists without a strategy are replaced. */
export type ListStrategy = { readonly key: string } | 'set';

/** The strategies of a kind's lists, by name of the field. No kind that is simulated has two lists of one name that differ in it. */
export type ListStrategies = Readonly<Record<string, ListStrategy>>;

const FROM_PRIMITIVES = '$deleteFromPrimitiveList/';

/** The object after a strategic merge patch. Shares nothing with either. */
export function strategicallyPatched(value: unknown, patch: Members, lists: ListStrategies): Members {
  if (patch['$patch'] === 'replace') return withoutDirectives(patch);
  if (patch['$patch'] === 'delete') return {};
  const result: Members = isMembers(value) ? copyOf(value) : {};
  // What is deleted from a list goes before the list is merged.
  for (const [name, gone] of Object.entries(patch)) {
    if (!name.startsWith(FROM_PRIMITIVES)) continue;
    const list = name.slice(FROM_PRIMITIVES.length);
    const kept = listOf(result[list]).filter((item) => !listOf(gone).some((other) => equal(item, other)));
    if (list in result) result[list] = kept;
  }
  for (const [name, change] of Object.entries(patch)) {
    if (name.startsWith('$')) continue;
    if (change === null) delete result[name];
    else if (Array.isArray(change)) result[name] = mergedList(result[name], change, lists[name], lists);
    else if (isMembers(change)) result[name] = strategicallyPatched(result[name], change, lists);
    else result[name] = change;
  }
  return result;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function withoutDirectives(patch: Members): Members {
  return Object.fromEntries(
    Object.entries(copyOf(patch)).filter(([name, value]) => !name.startsWith('$') && value !== null),
  );
}

function mergedList(
  value: unknown,
  change: readonly unknown[],
  strategy: ListStrategy | undefined,
  lists: ListStrategies,
): unknown[] {
  if (strategy === undefined) return copyOf([...change]);
  const before = listOf(value);
  if (strategy === 'set') {
    const added = change.filter((item, i) => change.indexOf(item) === i);
    return ordered(before, added, [...before.filter((item) => !added.includes(item)), ...added], (a, b) => a === b);
  }
  if (change.some((item) => isReplace(item))) return copyOf(change.filter((item) => !isReplace(item)));
  const same = (a: unknown, b: unknown): boolean => keyIn(a, strategy.key) === keyIn(b, strategy.key);
  const gone = change.filter((item) => isMembers(item) && item['$patch'] === 'delete');
  const entries = change.filter((item): item is Members => isMembers(item) && item['$patch'] !== 'delete');
  const kept = before.filter((item) => !gone.some((other) => same(item, other)));
  const changed = entries.map((entry) =>
    strategicallyPatched(
      kept.find((item) => same(item, entry)),
      entry,
      lists,
    ),
  );
  const untouched = kept.filter((item) => !entries.some((entry) => same(item, entry)));
  return ordered(before, changed, [...copyOf(untouched), ...changed], same);
}

const isReplace = (item: unknown): boolean => isMembers(item) && item['$patch'] === 'replace';
const keyIn = (item: unknown, key: string): unknown => (isMembers(item) ? item[key] : undefined);

/** As k8s.io/apimachinery orders it (`mergeSortedSlice`): what the patch names goes first, unless the list had it otherwise. */
function ordered(
  before: readonly unknown[],
  patched: readonly unknown[],
  all: readonly unknown[],
  same: (a: unknown, b: unknown) => boolean,
): unknown[] {
  const indexOf = (item: unknown): number => before.findIndex((other) => same(item, other));
  const others = all.filter((item) => !patched.some((one) => same(item, one)));
  const result: unknown[] = [];
  let [i, j] = [0, 0];
  while (i < others.length || j < patched.length) {
    const [other, one] = [others[i], patched[j]];
    const isBefore = i < others.length && (j >= patched.length || isLess(indexOf(other), indexOf(one)));
    result.push(isBefore ? other : one);
    if (isBefore) i += 1;
    else j += 1;
  }
  return result;
}

const isLess = (a: number, b: number): boolean => a >= 0 && b >= 0 && a < b;
