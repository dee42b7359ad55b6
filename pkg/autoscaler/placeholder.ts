const SCHEME = 'requested://';

/** What the id of an instance without a Node stands for: a Machine, or a replica for which there is no Machine yet. */
export type Placeholder =
  | { readonly kind: 'machine'; readonly machine: string }
  /** A replica that group `group` lacks; its name is one of Places. */
  | { readonly kind: 'missing'; readonly group: string; readonly place: string };

/** The id of a Machine that has no Node yet; the same as that of Gardener's fork. */
export function placeholderOf(machine: string): string {
  return `${SCHEME}${machine}`;
}

/** The id of a replica for which there is no Machine yet. No Machine can be named like it. */
export function missingPlaceholder(group: string, place: string): string {
  return `${SCHEME}${group}#${place}`;
}

/** Reads an id of an instance; undefined when it is no placeholder but the providerID of a Node. */
export function parsePlaceholder(id: string): Placeholder | undefined {
  if (!id.startsWith(SCHEME)) return undefined;
  const [, group, place] = /^(.+)#([^#]*)$/.exec(id.slice(SCHEME.length)) ?? [];
  if (group !== undefined && place !== undefined) return { kind: 'missing', group, place };
  return { kind: 'machine', machine: id.slice(SCHEME.length) };
}
