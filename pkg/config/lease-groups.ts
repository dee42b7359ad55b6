import type { ControllerName } from './config.ts';
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
    lease: 'machine-controller-manager',
    needed: ['machine-deployment', 'machine-set'],
    optional: ['safety.overshoot'],
  },
  {
    lease: 'machine-controller',
    needed: ['machine', 'machine-class', 'secret'],
    optional: ['safety.orphan-vms', 'safety.unmanaged-nodes'],
  },
];

/**
 * Throws FlagError when `controllers` holds only some of those that work under one Lease: a second process that ran the others
 * would wait for that Lease for ever. Only for leader election.
 */
export function refuseSplitLeases(controllers: ReadonlySet<ControllerName>): void {
  for (const { lease, needed, optional } of GROUPS) {
    const named = [...needed, ...optional].filter((name) => controllers.has(name));
    const missing = needed.filter((name) => !controllers.has(name));
    if (named.length === 0 || missing.length === 0) continue;
    throw new FlagError(
      `--controllers: "${named.join(',')}" is not valid without ${missing.join(' and ')}: they work under one Lease (${lease}), ` +
        'so a second process that runs the others would wait for it for ever; ' +
        'name them together, or set --leader-elect=false and run each controller in exactly one process',
    );
  }
}
