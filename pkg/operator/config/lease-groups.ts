import { MACHINE_LEASE, MANAGER_LEASE } from '../../kube/leader/names.ts';
import type { FlagSection } from './flag-section.ts';
import { FlagError } from './flag-error.ts';

/** What works under one Lease, which one process at a time can hold. */
export interface LeaseGroup {
  readonly lease: string;
  readonly needed: readonly string[];
  /** May be left out, but not run elsewhere. */
  readonly optional: readonly string[];
}

const OWN_GROUPS: readonly LeaseGroup[] = [
  { lease: MANAGER_LEASE, needed: ['machine-deployment', 'machine-set'], optional: ['safety.overshoot'] },
  {
    lease: MACHINE_LEASE,
    needed: ['machine', 'machine-class', 'secret'],
    optional: ['role-binding', 'safety.orphan-vms', 'safety.unmanaged-nodes'],
  },
];

/** Those of other APIs may join ours, or have their own. */
function groupsWith(sections: readonly FlagSection[]): readonly LeaseGroup[] {
  const groups = new Map(OWN_GROUPS.map((group) => [group.lease, group]));
  for (const { lease, needed, optional } of sections.flatMap(({ leases }) => leases)) {
    const before = groups.get(lease) ?? { needed: [], optional: [] };
    groups.set(lease, { lease, needed: [...before.needed, ...needed], optional: [...before.optional, ...optional] });
  }
  return [...groups.values()];
}

/** Names of the Leases under which `controllers` work. */
export function leasesOf(controllers: ReadonlySet<string>, sections: readonly FlagSection[]): ReadonlySet<string> {
  const used = groupsWith(sections).filter(({ needed, optional }) =>
    [...needed, ...optional].some((name) => controllers.has(name)),
  );
  return new Set(used.map(({ lease }) => lease));
}

/**
 * Throws FlagError when `controllers` holds only some of those that work under one Lease: a second process that ran the others
 * would wait for that Lease forever. Only for leader election.
 */
export function refuseSplitLeases(controllers: ReadonlySet<string>, sections: readonly FlagSection[]): void {
  for (const { lease, needed, optional } of groupsWith(sections)) {
    const named = [...needed, ...optional].filter((name) => controllers.has(name));
    const missing = needed.filter((name) => !controllers.has(name));
    if (named.length === 0 || missing.length === 0) continue;
    throw new FlagError(
      `--controllers: "${named.join(',')}" is not valid without ${missing.join(' and ')}: they share one Lease (${lease}), ` +
        'so a second process with the other controllers would wait for it forever; ' +
        'name them together, or set --leader-elect=false and run each controller in exactly one process',
    );
  }
}
