import { at, type Members } from './json.ts';

/** `metadata` of an object, as far as the server itself looks at it. */
export interface Metadata {
  name: string;
  namespace?: string;
  generateName?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

/** Who owns an object. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly blockOwnerDeletion?: boolean;
}

/** An object of the API. What is stored is never changed in place: each write stores another one. */
export interface StoredObject extends Members {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
}

/** Where an object is kept within its kind. */
export function keyOf({ namespace = '', name }: Pick<Metadata, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** Of a Namespace: who still has to delete what it contains. */
export function finalizersOf(object: unknown): readonly unknown[] {
  const finalizers = at(object, ['spec', 'finalizers']);
  return Array.isArray(finalizers) ? finalizers : [];
}
