import { kindKeys } from '../../../work/reconcile/kind-keys.ts';

/** Kinds that are looked after: one queue for both. */
const KEYS = kindKeys('Machine', 'Cluster');

export const clusterAPIQueueKeyOf = KEYS.queueKeyOf;

/** The kind, and the key of the object in caches. */
export const clusterAPIObjectOf = KEYS.objectOf;
