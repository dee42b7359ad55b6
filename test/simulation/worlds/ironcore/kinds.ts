import { join } from 'node:path';

import {
  COMPUTE_GROUP,
  IRONCORE_VERSION,
  NETWORKING_GROUP,
  STORAGE_GROUP,
} from '../../../../pkg/worlds/ironcore/api/group.ts';
import type { IronCoreMachine } from '../../../../pkg/worlds/ironcore/api/machine.ts';
import type { IronCoreMachinePool } from '../../../../pkg/worlds/ironcore/api/machine-pool.ts';
import type { IronCoreNetworkInterface } from '../../../../pkg/worlds/ironcore/api/network-interface.ts';
import type { IronCoreVolume } from '../../../../pkg/worlds/ironcore/api/volume.ts';
import { custom, definitionsIn, type Kind } from '../../api-server/kinds.ts';
import type { StoredObject } from '../../api-server/stored-object.ts';
import { type MachinesWorld, NAMESPACE } from '../../world/machines-world.ts';

/** Those of IronCore's groups. */
export const IRONCORE_KINDS: readonly Kind[] = definitionsIn(
  join(import.meta.dirname, '../../../../crds/ironcore'),
).flatMap(custom);

/** Plurals of what the world has of IronCore, with their groups. */
const GROUPS = {
  machines: COMPUTE_GROUP,
  machineclasses: COMPUTE_GROUP,
  machinepools: COMPUTE_GROUP,
  volumes: STORAGE_GROUP,
  networks: NETWORKING_GROUP,
  networkinterfaces: NETWORKING_GROUP,
} as const;
/** One of them. */
export type Plural = keyof typeof GROUPS;
const OF_CLUSTER: ReadonlySet<Plural> = new Set<Plural>(['machineclasses', 'machinepools']);

/** Whether a kind is that one of IronCore: there are other Machines, too. */
export function isOf({ group, plural }: Kind, wanted: Plural): boolean {
  return plural === wanted && group === GROUPS[wanted];
}

/** Path of all objects of a kind, or of one. */
export function pathTo(plural: Plural, name?: string): string {
  const scope = OF_CLUSTER.has(plural) ? '' : `/namespaces/${NAMESPACE}`;
  return `/apis/${GROUPS[plural]}/${IRONCORE_VERSION}${scope}/${plural}${name === undefined ? '' : `/${name}`}`;
}

/** What objects of the kinds are. */
interface OfKind {
  readonly machines: IronCoreMachine;
  readonly machineclasses: StoredObject;
  readonly machinepools: IronCoreMachinePool;
  readonly volumes: IronCoreVolume;
  readonly networks: StoredObject;
  readonly networkinterfaces: IronCoreNetworkInterface;
}

/** All objects of a kind, as they are at the moment. */
export function objectsOf<P extends Plural>({ servers }: MachinesWorld, plural: P): readonly OfKind[P][] {
  const { kinds, objects } = servers.control;
  const kind = kinds.find((one) => isOf(one, plural));
  // Whatever is stored is as its definition has it.
  return (kind === undefined ? [] : objects.of(kind).list()) as readonly unknown[] as readonly OfKind[P][];
}

/** An object to create. */
export function made(plural: Plural, kind: string, name: string, more: object): object {
  const metadata = { name, ...(!OF_CLUSTER.has(plural) && { namespace: NAMESPACE }) };
  return { apiVersion: `${GROUPS[plural]}/${IRONCORE_VERSION}`, kind, metadata, ...more };
}
