import type { KubeObject } from '../apis/meta.ts';
import type { Resource } from '../apis/resource.ts';
import type { RoleFile } from './preflight/roles/role.ts';
import type { AlsoRead, CachingProcess, KindTable } from './cached/kind.ts';

/**
 * An API that a process may serve beside ours: what it caches of it, and what it must be allowed. `pkg/worlds` lists them all; the operator
 * is handed that list, and neither it nor anything below it knows one.
 */
export interface World {
  /** As in flag `--controllers`. */
  readonly name: string;
  readonly kinds: KindTable;
  /** Of them, that of its machines which are no Machines of ours. */
  readonly machines?: Resource<KubeObject>;
  /** Which kinds of ours are cached for it in a process that would not need them otherwise. */
  readonly alsoReads?: (process: Omit<CachingProcess, 'alsoRead'>) => AlsoRead;
  /** Those of its kinds that the API server has to serve. */
  readonly needs: readonly NeededKind[];
  /** All shipped files with its roles. */
  readonly roles: readonly RoleFile[];
  /** What a process that serves no kinds of ours has instead of theirs. */
  readonly alone?: {
    /** Asked for, to see whether the API server responds. */
    readonly probed: Resource<KubeObject>;
    /** The shipped file to name where permissions are missing. */
    readonly roleFile: (leases: ReadonlySet<string>) => string;
  };
}

/** A kind that a controller serves where it is named. */
export interface NeededKind {
  readonly controller: string;
  readonly resource: Resource<KubeObject>;
  /** What does not work without it; undefined: nothing does. */
  readonly lost?: string;
}
