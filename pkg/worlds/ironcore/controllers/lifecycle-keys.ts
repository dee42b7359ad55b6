import { kindKeys } from '../../../work/reconcile/kind-keys.ts';

const KEYS = kindKeys('pool', 'class', 'machine');

export const lifecycleKeyOf = KEYS.queueKeyOf;

export const lifecycleObjectOf = KEYS.objectOf;
