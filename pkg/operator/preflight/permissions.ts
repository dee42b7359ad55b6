import type { AccessAttributes } from '../../kube/client/access-rules.ts';
import { servesOwnKinds } from '../../kube/leader/names.ts';
import type { Config } from '../config/config.ts';
import { MACHINIST_ROLES, machinistRoles } from './roles/machinist.ts';
import type { ClusterRole, Grant, Place, RoleFile } from './roles/role.ts';
import { type Workload, workloadOf } from './workload.ts';

/** What a process may have to be allowed. */
export interface Permission {
  readonly cluster: ClusterRole;
  readonly attributes: AccessAttributes;
  /** The shipped file that grants it. */
  readonly file: string;
  /** What does not work without it; undefined: nothing does. */
  readonly lost: string | undefined;
}

/** What the manager needs for an API that it serves beside ours. */
export interface ServedRoles {
  readonly roles: readonly RoleFile[];
  /** For a process that serves no kinds of ours. */
  readonly alone?: { readonly roleFile: (leases: ReadonlySet<string>) => string };
}

/** All shipped files with roles of the manager: `npm run generate` writes them, and docs/reference/permissions.md. */
export function allRoleFiles(served: readonly ServedRoles[]): readonly RoleFile[] {
  return [...MACHINIST_ROLES, ...served.flatMap(({ roles }) => roles)];
}

/** The shipped files that grant what the controllers of these Leases need, by cluster. */
export function roleFiles(
  workload: Pick<Workload, 'leases' | 'namespace' | 'leaseNamespace' | 'hasCells' | 'ofNamedCells'>,
  served: readonly ServedRoles[],
): Readonly<Record<ClusterRole, string>> {
  const files = machinistRoles(workload);
  if (servesOwnKinds(workload.leases)) return files;
  const [file = files.control] = served.flatMap(({ alone }) => alone?.roleFile(workload.leases) ?? []);
  return { control: file, target: file };
}

/**
 * What a process is to be allowed: what the shipped files grant for its layout. What it cannot do anything without keeps it from
 * leading; the rest is told, as roles that others wrote may lack it.
 */
export function permissionsOf(workload: Workload, served: readonly ServedRoles[]): readonly Permission[] {
  const files = allRoleFiles(served).filter(({ isFor }) => isFor(workload));
  const permissions = files.flatMap(({ file, roles }) =>
    roles.flatMap(({ cluster = 'control', place, grants }) =>
      grants
        .filter(({ isUsed }) => isUsed?.(workload) ?? true)
        .flatMap((grant) =>
          attributesOf(grant, namespaceOf(place, workload)).map((one) => ({ cluster, file, ...one })),
        ),
    ),
  );
  return withoutTwins(permissions);
}

/** What a process is to be allowed in the namespace of a cell that is named, by the flags of that. */
export function cellPermissions(config: Config, served: readonly ServedRoles[]): readonly Permission[] {
  const known = { hasTarget: false, callsDrivers: false, ofNamedCells: 'cell' } as const;
  return permissionsOf(workloadOf(config, known), served);
}

function namespaceOf(place: Place, { namespace, leaseNamespace }: Workload): string | undefined {
  if (place === 'machines') return namespace;
  if (place === 'leases') return leaseNamespace;
  return typeof place === 'string' ? undefined : place.namespace;
}

function attributesOf(
  { group, resources, name, needed = [], optional = {} }: Grant,
  namespace: string | undefined,
): readonly Pick<Permission, 'attributes' | 'lost'>[] {
  const verbs = [
    ...needed.map((verb) => ({ verb, lost: undefined })),
    ...Object.entries(optional).flatMap(([some, lost]) => some.split(', ').map((verb) => ({ verb, lost }))),
  ];
  return resources.flatMap((path) => {
    const [resource = '', subresource] = path.split('/');
    return verbs.map(({ verb, lost }) => ({
      attributes: { verb, group, resource, subresource, namespace, name },
      lost,
    }));
  });
}

/** Each once; of two, the one that nothing works without, or else the first. */
function withoutTwins(permissions: readonly Permission[]): readonly Permission[] {
  const byWhat = new Map<string, Permission>();
  for (const permission of permissions) {
    const what = JSON.stringify([permission.cluster, permission.attributes]);
    const other = byWhat.get(what);
    if (other === undefined || (other.lost !== undefined && permission.lost === undefined))
      byWhat.set(what, permission);
  }
  return [...byWhat.values()];
}
