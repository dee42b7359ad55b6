import type { ControllerName } from './config.ts';
import { IRONCORE_POOLS_LEASE, IRONCORE_SCHEDULER_LEASE, MACHINE_LEASE, MANAGER_LEASE } from '../leader/names.ts';
import { FlagError } from './value.ts';

/** What works under one Lease, which one process at a time can hold. */
interface LeaseGroup {
  readonly lease: string;
  readonly needed: readonly ControllerName[];
  /** May be left out, but not run elsewhere. */
  readonly optional: readonly ControllerName[];
}

const GROUPS: readonly LeaseGroup[] = [
  {
    lease: MANAGER_LEASE,
    needed: ['machine-deployment', 'machine-set'],
    optional: ['safety.overshoot', 'mirantis'],
  },
  {
    lease: MACHINE_LEASE,
    needed: ['machine', 'machine-class', 'secret'],
    optional: ['role-binding', 'safety.orphan-vms', 'safety.unmanaged-nodes', 'cluster-api'],
  },
  { lease: IRONCORE_SCHEDULER_LEASE, needed: ['ironcore.scheduler'], optional: ['ironcore.lifecycle'] },
  { lease: IRONCORE_POOLS_LEASE, needed: ['ironcore.pools', 'ironcore.machines'], optional: [] },
];

/** Names of the Leases under which `controllers` work. */
export function leasesOf(controllers: ReadonlySet<ControllerName>): ReadonlySet<string> {
  const used = GROUPS.filter(({ needed, optional }) => [...needed, ...optional].some((name) => controllers.has(name)));
  return new Set(used.map(({ lease }) => lease));
}

/**
 * Throws FlagError when `controllers` holds only some of those that work under one Lease: a second process that ran the others
 * would wait for that Lease forever. Only for leader election.
 */
export function refuseSplitLeases(controllers: ReadonlySet<ControllerName>): void {
  for (const { lease, needed, optional } of GROUPS) {
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
