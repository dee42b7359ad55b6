import type { Workload } from '../workload.ts';

/** Which of the two clusters of a process; both may be one. */
export type ClusterRole = 'control' | 'target';

type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** Verbs on resources of one group, as a rule of RBAC. */
export interface Grant {
  /** Empty: the core group. */
  readonly group: string;
  /** A subresource follows a slash. */
  readonly resources: readonly string[];
  /** Of the only object. */
  readonly name?: string;
  /** What a process that lacks one of them does not work without. */
  readonly needed?: readonly Verb[];
  /** By verbs (`list, watch`), what is lost without them. */
  readonly optional?: Readonly<Record<string, string>>;
  /** What for: the comment of the rule, and its row in the reference. */
  readonly why: string;
  /** Which processes use it; the role grants it to all of them. */
  readonly isUsed?: (workload: Workload) => boolean;
}

/**
 * Where a role holds: in the namespace of the Machines, in that of the Leases, in the whole cluster, or in a namespace of this name. Both of
 * the first are namespace `machinist` in the shipped files.
 */
export type Place = 'machines' | 'leases' | 'cluster' | { readonly namespace: string };

/** A Role, or a ClusterRole, with its binding. */
export interface Role {
  readonly name: string;
  /** The control cluster if left out. */
  readonly cluster?: ClusterRole;
  readonly place: Place;
  /** Its RoleBinding is in deploy/machines-namespace.yaml: the role is a ClusterRole all the same. */
  readonly isBoundElsewhere?: true;
  /** What is said before it, where the file holds several. */
  readonly comment?: string;
  readonly grants: readonly Grant[];
}

export function role(name: string, where: Omit<Role, 'name' | 'grants'>, grants: readonly Grant[]): Role {
  return { name, ...where, grants };
}

/** A shipped file of deploy/rbac. */
export interface RoleFile {
  readonly file: string;
  /** Who needs it. */
  readonly comment: string;
  /** A namespace that the file creates. */
  readonly namespace?: string;
  readonly isFor: (workload: Workload) => boolean;
  readonly roles: readonly Role[];
}

/** To read once, and to keep a cache. */
export const READ: readonly Verb[] = ['get', 'list', 'watch'];
/** To keep a cache. */
export const FOLLOW: readonly Verb[] = ['list', 'watch'];

export function grant(group: string, resources: readonly string[], what: Omit<Grant, 'group' | 'resources'>): Grant {
  return { group, resources, ...what };
}

/** The same grants, used by fewer processes. */
export function usedBy(isUsed: (workload: Workload) => boolean, grants: readonly Grant[]): readonly Grant[] {
  return grants.map((one) => ({
    ...one,
    isUsed: (workload) => isUsed(workload) && (one.isUsed?.(workload) ?? true),
  }));
}

/** To write Events. */
export const EVENTS = grant('', ['events'], {
  optional: { 'create, patch': 'Events are not recorded' },
  why: 'Records Events, for kubectl describe.',
});

/** To lead under a Lease. */
export function leaseGrants(lease: string): readonly Grant[] {
  return usedBy(
    (workload) => workload.isElected && workload.leases.has(lease),
    [
      grant('coordination.k8s.io', ['leases'], {
        needed: ['create'],
        why: 'Leader election. RBAC cannot restrict create by name.',
      }),
      grant('coordination.k8s.io', ['leases'], {
        name: lease,
        needed: ['get', 'update'],
        optional: { watch: 'a released Lease is taken over seconds later' },
        why: 'Updated by PUT with a resourceVersion; with watch, a takeover takes less than a second.',
      }),
    ],
  );
}
