import { isDeepStrictEqual } from 'node:util';

import type { IronCoreVolume } from '../../../../pkg/worlds/ironcore/api/volume.ts';
import type { Random } from '../../../../pkg/base/random/random.ts';
import type { MachinesWorld } from '../../world/machines-world.ts';
import { isOf, objectsOf, pathTo } from './kinds.ts';

const DRIVER = 'simulated';
/** How long it takes at most to make a volume, or another size of it. */
const WORK_MS = 15_000;

/** The provider of Volumes: says how they are reached, each by a handle of its own, and gives them the size that is asked for. */
export function provideStorage(world: MachinesWorld, random: Random): void {
  const { objects } = world.servers.control;
  const later = (name: string): void => void world.time.schedule(500 + random() * WORK_MS, () => provide(world, name));
  objects.onChange((kind, { type, object, previous }) => {
    if (!isOf(kind, 'volumes') || type === 'DELETED') return;
    const { resources } = sizeOf(object);
    if (previous === undefined || !isDeepStrictEqual(resources, sizeOf(previous).resources))
      later(object.metadata.name);
  });
  objects.onRestore(() => {
    for (const { metadata } of objectsOf(world, 'volumes')) later(metadata.name);
  });
}

function sizeOf({ spec }: IronCoreVolume): { readonly resources: unknown } {
  return { resources: spec?.resources };
}

function provide(world: MachinesWorld, name: string): void {
  const volume = objectsOf(world, 'volumes').find(({ metadata }) => metadata.name === name);
  if (volume === undefined || volume.metadata.deletionTimestamp !== undefined) return;
  const access = { driver: DRIVER, handle: `disk-${volume.metadata.uid}` };
  const status = { state: 'Available', access, resources: volume.spec?.resources ?? {} };
  if (isDeepStrictEqual(volume.status, status)) return;
  world.act('PATCH', `${pathTo('volumes', name)}/status`, { status });
}
