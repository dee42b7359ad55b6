import type { AccessAttributes } from '../../kube/client/access-rules.ts';
import type { Permission } from './permissions.ts';
import { CELL_ROLES, MACHINES_ROLES } from './roles/machinist.ts';
import type { ClusterRole } from './roles/role.ts';

/** The shipped file with the namespace of the Machines, and the RoleBinding in it; by that of the role. */
const NAMESPACES: ReadonlyMap<string, string> = new Map([
  [MACHINES_ROLES, 'deploy/machines-namespace.yaml'],
  [CELL_ROLES, 'deploy/cell-namespace.yaml'],
]);

/** Resources that one line of the log names. */
const MOST_NAMED = 6;

/** What is missing of one shipped file. */
export interface MissingGrants {
  readonly cluster: ClusterRole;
  /** What to apply: that file, and the one with its binding where that is another. */
  readonly files: readonly string[];
  /** `create, patch machines.machine.sapcloud.io in namespace x`, one for each resource. */
  readonly what: readonly string[];
  /** What does not work without it; empty: nothing does. */
  readonly lost: readonly string[];
}

/** What to apply, and what for, by cluster and file. */
export function missingByFile(missing: readonly Permission[]): readonly MissingGrants[] {
  const byFile = Map.groupBy(missing, ({ cluster, file }) => `${cluster} ${file}`);
  return [...byFile.values()].flatMap((ofFile) => {
    const [first] = ofFile;
    if (first === undefined) return [];
    const isNeeded = ofFile.some(({ lost }) => lost === undefined);
    const lost = isNeeded ? [] : [...new Set(ofFile.flatMap((one) => one.lost ?? []))];
    const files = [first.file, ...[NAMESPACES.get(first.file) ?? []].flat()];
    return [{ cluster: first.cluster, files, what: describeWhat(ofFile), lost }];
  });
}

/** What is missing in one line: `missing permissions in the control cluster: create leases.coordination.k8s.io …: apply FILE`. */
export function describeMissing(missing: readonly Permission[]): string {
  return missingByFile(missing)
    .map(({ cluster, files, what, lost }) => {
      const without = lost.length === 0 ? '' : ` (without: ${lost.join('; ')})`;
      return `missing permissions in the ${cluster} cluster: ${cut(what)}: apply ${files.join(' and ')}${without}`;
    })
    .join('; ');
}

function describeWhat(missing: readonly Permission[]): string[] {
  return [...Map.groupBy(missing, ({ attributes }) => whereOf(attributes))].map(
    ([where, some]) => `${[...new Set(some.map(({ attributes: { verb } }) => verb))].join(', ')} ${where}`,
  );
}

function cut(what: readonly string[]): string {
  const more = what.length > MOST_NAMED ? `, and ${what.length - MOST_NAMED} more` : '';
  return `${what.slice(0, MOST_NAMED).join('; ')}${more}`;
}

/** `machines/status.machine.sapcloud.io in namespace x`. */
function whereOf({ group, resource, subresource, namespace, name }: AccessAttributes): string {
  const path = subresource === undefined ? resource : `${resource}/${subresource}`;
  const object = name === undefined ? '' : ` ${name}`;
  const scope = namespace === undefined ? '' : ` in namespace ${namespace}`;
  return `${path}.${group === '' ? 'core' : group}${object}${scope}`;
}
