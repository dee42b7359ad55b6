import type { ServedWorld } from '../controllers/world.ts';
import { CLUSTER_API } from './cluster-api/world.ts';
import { IRONCORE } from './ironcore/world.ts';
import { MIRANTIS } from './mirantis/world.ts';

/** All APIs that are served beside ours. */
export const WORLDS: readonly ServedWorld[] = [MIRANTIS, CLUSTER_API, IRONCORE];
