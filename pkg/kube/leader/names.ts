/** Lease of the deployments', sets' and overshoot controllers. */
export const MANAGER_LEASE = 'machine-controller-manager';
export const MACHINE_LEASE = 'machine-controller';
/** Whether what works under these Leases looks after kinds of ours, and the Nodes that they become. */
export function servesOwnKinds(leases: ReadonlySet<string>): boolean {
  return leases.has(MANAGER_LEASE) || leases.has(MACHINE_LEASE);
}
