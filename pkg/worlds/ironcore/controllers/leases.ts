export const IRONCORE_SCHEDULER_LEASE = 'ironcore-scheduler';

export const IRONCORE_POOLS_LEASE = 'ironcore-pools';
