/** Points from an owned object to its owner, as metav1.OwnerReference. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** metav1.ObjectMeta as far as it is read or written here; unknown members survive because only patches are written. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  /** RFC 3339. Go clients send null in objects that they create; the server always fills it in. */
  creationTimestamp: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  /** Who set which field: of live reads alone, caches leave it out. One empty entry in a patch ends the record. */
  managedFields?: readonly object[];
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** metav1.ListMeta as it is on the wire. */
export interface ListMeta {
  resourceVersion: string;
  continue?: string;
  remainingItemCount?: number;
}

export interface List<T> {
  metadata: ListMeta;
  items: T[];
}

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: LabelSelectorRequirement[];
}

export interface LabelSelectorRequirement {
  key: string;
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  values?: string[];
}

/** metav1.Status: what the API server answers instead of an object. */
export interface Status {
  kind?: 'Status';
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
  details?: {
    name?: string;
    kind?: string;
    uid?: string;
    retryAfterSeconds?: number;
    causes?: { reason?: string; message?: string; field?: string }[];
  };
}

/** The key of an object in caches and queues: `namespace/name`, or the bare name of a cluster-scoped one. */
export function keyOf(object: { metadata: { namespace?: string; name: string } }): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** The key of the object called `name` beside another one, in its namespace. */
export function keyBeside(object: { metadata: { namespace?: string } }, name: string): string {
  return keyOf({ metadata: { namespace: object.metadata.namespace ?? '', name } });
}

/** Where an object is, as the Kubernetes client asks for it; the namespace of a cluster-scoped one is empty. */
export function refOf({ metadata }: { metadata: { namespace?: string; name: string } }): {
  namespace: string;
  name: string;
} {
  return { namespace: metadata.namespace ?? '', name: metadata.name };
}

/** The reference that makes its owner manage an object; an object has at most one. */
export function controllerOf(object: { metadata: ObjectMeta }): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((ref) => ref.controller === true);
}

/** True when deletion was asked for and finalizers are still being worked on. */
export function isBeingDeleted(object: { metadata: ObjectMeta }): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}
