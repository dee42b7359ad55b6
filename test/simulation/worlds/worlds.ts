import { InvalidArgumentError } from 'commander';

import { USER_ACT_NAMES, USER_ACTS } from '../world/acts.ts';
import { OTHER_ACT_NAMES, OTHER_ACTS } from '../world/other-acts.ts';
import { Guests } from '../world/guests.ts';
import { Pool } from '../world/pool.ts';
import { AUTOSCALER } from './autoscaler/autoscaler-world.ts';
import { CELLS } from './cells/cells-world.ts';
import { CLUSTER_API } from './cluster-api/cluster-api-world.ts';
import { IRONCORE } from './ironcore/ironcore-world.ts';
import type { WorldKind } from './kind.ts';
import { MIRANTIS } from './mirantis/mirantis-world.ts';

const MACHINES: WorldKind = {
  acts: USER_ACT_NAMES,
  usual: [],
  others: OTHER_ACT_NAMES,
  without: [],
  adapt: (options) => options,
  populate: (world, seed) => new Pool(world, { ...USER_ACTS, ...OTHER_ACTS }, new Guests(world, seed)),
};

/** All kinds, by what `--world` calls them. */
export const WORLDS = {
  machines: MACHINES,
  autoscaler: AUTOSCALER,
  cells: CELLS,
  'cluster-api': CLUSTER_API,
  ironcore: IRONCORE,
  mirantis: MIRANTIS,
} satisfies Readonly<Record<string, WorldKind>>;

/** One of their names. */
export type WorldName = keyof typeof WORLDS;

/** The kind of that name. Throws for others, with those that there are. For commander. */
export function worldNamed(name: string): WorldName {
  if (Object.hasOwn(WORLDS, name)) return name as WorldName;
  throw new InvalidArgumentError(`Possible values: ${Object.keys(WORLDS).join(', ')}.`);
}
