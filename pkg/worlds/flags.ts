import { CLUSTER_API_FLAGS } from './cluster-api/controllers/flags.ts';
import { IRONCORE_FLAGS } from './ironcore/controllers/flags.ts';
import { MIRANTIS_FLAGS } from './mirantis/controllers/flags.ts';

/** What they have on the command line, apart from the rest: help and mistakes are answered before any controller is loaded. */
export const WORLD_FLAGS = [MIRANTIS_FLAGS, CLUSTER_API_FLAGS, IRONCORE_FLAGS];
