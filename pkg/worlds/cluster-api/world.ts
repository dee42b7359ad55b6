import type { World } from '../../operator/world.ts';
import { CLUSTER_API_KINDS } from './kinds.ts';
import { CLUSTER_API_ROLES } from './roles.ts';

export const CLUSTER_API: World = { name: 'cluster-api', kinds: CLUSTER_API_KINDS, roles: CLUSTER_API_ROLES };
