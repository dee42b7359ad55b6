import { copyOf, equal, isMembers, type Members } from '../json.ts';
import type { ListStrategies, ListStrategy } from './strategic-merge-patch.ts';

/** One apply, and what was applied before it. */
export interface Application {
  readonly wanted: Members;
  /** The previous apply of the same manager. */
  readonly last: Members;
  /** The latest applies of other managers. */
  readonly others: readonly Members[];
}

/**
 * The object after a server-side apply: with what is wanted, and without what the same manager applied before, unless another manager applied
 * that, too. Shares nothing with any of them.
 */
export function afterApply(value: Members, { wanted, last, others }: Application, lists: ListStrategies): Members {
  const kept = [wanted, ...others];
  return merged(without(value, last, kept, lists), wanted, lists);
}

/** Whether an apply changes a value that its manager has not applied: somebody else owns that. */
export function takesOver(value: Members, { wanted, last }: Pick<Application, 'wanted' | 'last'>): boolean {
  return Object.entries(wanted).some(([name, want]) => {
    const [is, was] = [value[name], last[name]];
    if (is === undefined || equal(is, want)) return false;
    if (isMembers(is) && isMembers(want)) return takesOver(is, { wanted: want, last: isMembers(was) ? was : {} });
    return !equal(is, was);
  });
}

function without(value: Members, gone: Members, kept: readonly Members[], lists: ListStrategies): Members {
  const result = copyOf(value);
  for (const [name, member] of Object.entries(gone)) {
    const is = result[name];
    const present = kept.flatMap((one) => (name in one ? [one[name]] : []));
    if (isMembers(member) && isMembers(is)) {
      const rest = without(is, member, present.filter(isMembers), lists);
      if (present.length > 0 || Object.keys(rest).length > 0) result[name] = rest;
      else delete result[name];
    } else if (Array.isArray(member) && Array.isArray(is) && lists[name] !== undefined) {
      const key = keyIn(lists[name]);
      const keys = new Set((present.filter(Array.isArray) as unknown[][]).flat().map(key));
      const isGone = (item: unknown): boolean => !keys.has(key(item)) && member.some((one) => key(one) === key(item));
      result[name] = (is as unknown[]).filter((item) => !isGone(item));
    } else if (present.length === 0) delete result[name];
  }
  return result;
}

function merged(value: Members, wanted: Members, lists: ListStrategies): Members {
  const result = copyOf(value);
  for (const [name, want] of Object.entries(wanted)) {
    const [is, strategy] = [result[name], lists[name]];
    if (isMembers(want) && isMembers(is)) result[name] = merged(is, want, lists);
    else if (Array.isArray(want) && Array.isArray(is) && strategy !== undefined) {
      result[name] = mergedList(is, want, keyIn(strategy), lists);
    } else result[name] = copyOf(want);
  }
  return result;
}

/** In the order of what is wanted; other entries stay before the entry that they were before. */
function mergedList(
  is: readonly unknown[],
  want: readonly unknown[],
  key: (item: unknown) => unknown,
  lists: ListStrategies,
): unknown[] {
  const wanted = new Set(want.map(key));
  const present = new Map(is.map((item) => [key(item), item]));
  const entries = want.map((item) => {
    const old = present.get(key(item));
    return isMembers(item) && isMembers(old) ? merged(old, item, lists) : copyOf(item);
  });
  const result: unknown[] = [];
  for (const item of is) {
    const next = wanted.has(key(item)) ? entries.shift() : item;
    if (next !== undefined) result.push(next);
  }
  return [...result, ...entries];
}

/** By which member entries of a list are told apart. */
function keyIn(strategy: ListStrategy): (item: unknown) => unknown {
  return (item) => (strategy !== 'set' && isMembers(item) ? item[strategy.key] : item);
}
