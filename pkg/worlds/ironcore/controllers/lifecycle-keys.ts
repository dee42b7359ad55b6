import { kindKeys } from '../../../work/reconcile/kind-keys.ts';

/** What the queue of the life cycle holds. */
const KEYS = kindKeys('pool', 'class', 'machine');

export const lifecycleKeyOf = KEYS.queueKeyOf;

export const lifecycleObjectOf = KEYS.objectOf;
