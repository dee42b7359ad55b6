import { CLUSTER_API_LISTED } from './cluster-api/listed.ts';
import { IRONCORE_LISTED } from './ironcore/listed.ts';
import type { ListedWorld } from './listed-world.ts';
import { MIRANTIS_LISTED } from './mirantis/listed.ts';

/** All APIs that are served beside ours: no other list has them. */
export const LISTED_WORLDS: readonly ListedWorld[] = [MIRANTIS_LISTED, CLUSTER_API_LISTED, IRONCORE_LISTED];

/** What they have on the command line. */
export const WORLD_FLAGS = LISTED_WORLDS.map(({ flags }) => flags);
