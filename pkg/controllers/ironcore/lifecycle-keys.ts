import { kindKeys } from '../../reconcile/kind-keys.ts';

/** What the queue of the life cycle holds. */
const KEYS = kindKeys('pool', 'class', 'machine');

/** The key of an object in that queue. */
export const lifecycleKeyOf = KEYS.queueKeyOf;

/** The object that such a key is of. */
export const lifecycleObjectOf = KEYS.objectOf;
