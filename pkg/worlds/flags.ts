import { CLUSTER_API_FLAGS } from '../controllers/cluster-api/flags.ts';
import { IRONCORE_FLAGS } from '../controllers/ironcore/flags.ts';
import { MIRANTIS_FLAGS } from '../controllers/mirantis/flags.ts';

/** What they have on the command line, apart from the rest: help and mistakes are answered before any controller is loaded. */
export const WORLD_FLAGS = [MIRANTIS_FLAGS, CLUSTER_API_FLAGS, IRONCORE_FLAGS];
