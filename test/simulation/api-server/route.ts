import { notServed } from './failure.ts';
import type { Kind } from './kinds.ts';

/** What a path names. */
export interface Route {
  readonly kind: Kind;
  /** Undefined: those of all namespaces, or a kind without. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

const PATH =
  /^\/(?:api\/(v1)|apis\/([^/]+)\/([^/]+))\/(?:namespaces\/([^/]+)\/(?!status$|finalize$))?([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/;

/** Finds what a path names. Throws a Failure. */
export function routeOf(kinds: readonly Kind[], path: string): Route {
  const [, core, group = '', version = core, namespace, plural, name, subresource] = PATH.exec(path) ?? [];
  const kind = kinds.find((one) => one.group === group && one.version === version && one.plural === plural);
  if (kind === undefined || (namespace !== undefined && !kind.namespaced)) throw notServed();
  if (kind.namespaced && namespace === undefined && name !== undefined) throw notServed();
  const decoded = (part: string | undefined): string | undefined => part && decodeURIComponent(part);
  return { kind, namespace: decoded(namespace), name: decoded(name), subresource };
}
