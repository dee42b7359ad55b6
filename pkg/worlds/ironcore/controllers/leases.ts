/** Lease of the scheduler for IronCore's Machines. */
export const IRONCORE_SCHEDULER_LEASE = 'ironcore-scheduler';

/** Lease of what serves IronCore's pools. */
export const IRONCORE_POOLS_LEASE = 'ironcore-pools';
