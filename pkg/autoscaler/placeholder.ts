const SCHEME = 'requested://';

/** What the id of an instance without a Node stands for: a Machine, or a replica for which there is no Machine yet. */
export type Placeholder =
  | { readonly kind: 'machine'; readonly machine: string }
  /** The `index`-th replica, from 0, that group `group` lacks. */
  | { readonly kind: 'missing'; readonly group: string; readonly index: number };

/** The id of a Machine that has no Node yet; the same as that of Gardener's fork. */
export function placeholderOf(machine: string): string {
  return `${SCHEME}${machine}`;
}

/** The id of a replica for which there is no Machine yet. No Machine can be named like it. */
export function missingPlaceholder(group: string, index: number): string {
  return `${SCHEME}${group}#${index}`;
}

/** Reads an id of an instance; undefined when it is no placeholder but the providerID of a Node. */
export function parsePlaceholder(id: string): Placeholder | undefined {
  if (!id.startsWith(SCHEME)) return undefined;
  const [, group, index] = /^(.+)#(\d+)$/.exec(id.slice(SCHEME.length)) ?? [];
  if (group !== undefined && index !== undefined) return { kind: 'missing', group, index: Number(index) };
  return { kind: 'machine', machine: id.slice(SCHEME.length) };
}
