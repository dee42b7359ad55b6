import { keyOf, type KubeObject } from '../../../apis/meta.ts';
import { kindKeys } from '../../../work/reconcile/kind-keys.ts';

/** Kinds that the front end serves: one queue for all of them, so that their passes take turns. */
const KEYS = kindKeys('Machine', 'MachinePool', 'Cluster');

export type FrontEndKindName = ReturnType<typeof KEYS.objectOf>['kind'];

export function mirantisQueueKeyOf(kind: FrontEndKindName, object: KubeObject): string {
  return KEYS.queueKeyOf(kind, keyOf(object));
}

/** The kind, and the key of the object in caches. */
export const mirantisObjectOf = KEYS.objectOf;
