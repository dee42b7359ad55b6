import {
  COMPUTE_GROUP,
  IRONCORE_VERSION,
  NETWORKING_GROUP,
  STORAGE_GROUP,
} from '../../../../pkg/worlds/ironcore/api/group.ts';
import type { Definition } from '../definition.ts';
import { int64, listOf, mapOf, object, quantity, type Schema, text, time } from '../schema.ts';

const IRONCORE = { version: IRONCORE_VERSION, folder: 'ironcore' };

/** Of a kind whose members we all know. */
export const COMPUTE = { ...IRONCORE, group: COMPUTE_GROUP, isClosed: true } as const;
/** Of volumes; members that we do not use are kept. */
export const STORAGE = { ...IRONCORE, group: STORAGE_GROUP } as const;
/** Of networks and their interfaces; the same. */
export const NETWORKING = { ...IRONCORE, group: NETWORKING_GROUP } as const;

/** Takes any members. */
export const OPEN: Schema = { 'x-kubernetes-preserve-unknown-fields': true };

/** The column that each kind ends with. */
export const AGE: Definition['columns'][number] = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since its creation.',
};

/** Name of an object or of an entry. */
export function name(description: string): Schema {
  return text(description, { minLength: 1, maxLength: 253 });
}

/** Names another object. */
export function reference(description: string, more: Schema = {}): Schema {
  return object(
    description,
    { name: name('Its name.') },
    { required: ['name'], 'x-kubernetes-map-type': 'atomic', ...more },
  );
}

/** Names another object and says which one of that name. */
export function uidReference(description: string): Schema {
  return object(
    description,
    { name: text('Its name.'), uid: text('Its UID.') },
    { required: ['name', 'uid'], 'x-kubernetes-map-type': 'atomic' },
  );
}

/** Quantities by resource. */
export function resources(description: string, more: Schema = {}): Schema {
  return mapOf(description, quantity(), more);
}

/** Conditions as IronCore has them. */
export function conditions(more: Record<string, Schema> = {}): Schema {
  const condition = object(
    'What is so, or not so.',
    {
      type: text('Type of the condition.'),
      status: text('True, False or Unknown.', { enum: ['True', 'False', 'Unknown'] }),
      reason: text('Reason of the last change, in CamelCase.'),
      message: text('Human-readable details.'),
      ...more,
      lastTransitionTime: time('When the status last changed.'),
    },
    { required: ['type', 'status'] },
  );
  return listOf('Conditions, one of each type.', condition, {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  });
}

/** The generation that something was said about. */
export function observedGeneration(description: string): Schema {
  return int64(description);
}

/** A list of entries by their name. */
export function namedList(description: string, entry: Schema, more: Schema = {}): Schema {
  return listOf(description, entry, {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    ...more,
  });
}
