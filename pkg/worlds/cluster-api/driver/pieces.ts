import { CLUSTER_API_GROUP } from '../api/keys.ts';
import { isBeingDeleted, type KubeObject } from '../../../apis/meta.ts';
import { isCreatedFor, type Marks } from './marks.ts';
import type { Part } from './removal.ts';

/** An object that has the name of something of a machine. */
export interface Piece {
  readonly part: Part;
  /** For people: `SimMachine m-1`. */
  readonly what: string;
  readonly object: KubeObject;
}

/** What keeps a creation from going on with what is there. foreign: in the way, and not ours. going: what was ours is on its way out. */
export type Obstacle = { readonly kind: 'foreign' | 'going'; readonly what: string };

/** Whether a machine can be made of what is there; undefined: it can, or goes on where it was left. */
export function obstacleIn(
  pieces: readonly Piece[],
  machine: Pick<Marks, 'cluster' | 'machineName' | 'machineUID'>,
): Obstacle | undefined {
  const foreign = pieces.find(({ object }) => !isCreatedFor(object, machine));
  if (foreign !== undefined) return { kind: 'foreign', what: foreign.what };
  const hasMachine = pieces.some(({ part }) => part === 'machine');
  const going = pieces.find(({ object }) => isBeingDeleted(object) || (!hasMachine && wasOwned(object)));
  return going === undefined ? undefined : { kind: 'going', what: going.what };
}

/** What belonged to a Machine that is gone is collected as garbage, sooner or later. */
function wasOwned({ metadata: { ownerReferences = [] } }: KubeObject): boolean {
  return ownerReferences.some(
    ({ kind, apiVersion }) => kind === 'Machine' && apiVersion.startsWith(`${CLUSTER_API_GROUP}/`),
  );
}
