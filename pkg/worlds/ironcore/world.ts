import { ironCoreMachines } from '../../apis/ironcore/resources.ts';
import { IRONCORE_SCHEDULER_LEASE } from '../../leader/names.ts';
import type { World } from '../../operator/world.ts';
import { IRONCORE_KINDS } from './kinds.ts';
import { IRONCORE_ROLES, POOLS_FILE, SCHEDULER_FILE } from './roles.ts';

export const IRONCORE: World = {
  name: 'ironcore',
  kinds: IRONCORE_KINDS,
  roles: IRONCORE_ROLES,
  alone: {
    probed: ironCoreMachines,
    roleFile: (leases) => (leases.has(IRONCORE_SCHEDULER_LEASE) ? SCHEDULER_FILE : POOLS_FILE),
  },
};
