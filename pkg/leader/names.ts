/** Lease of the deployments', sets' and overshoot controllers. */
export const MANAGER_LEASE = 'machine-controller-manager';
/** Lease of the machines' controllers. */
export const MACHINE_LEASE = 'machine-controller';
