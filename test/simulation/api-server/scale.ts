import { type Cause, invalid, modified } from './failure.ts';
import { at, isMembers, type Members } from './json.ts';
import type { Kind } from './kinds.ts';
import type { StoredObject } from './stored-object.ts';

/** What the scale subresource shows of an object. */
export function scaleOf({ scale }: Kind, object: StoredObject): Members {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const count = (path: readonly string[] | undefined): number => Number(at(object, path ?? []) ?? 0);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: count(scale?.spec) === 0 ? {} : { replicas: count(scale?.spec) },
    status: { replicas: count(scale?.status) },
  };
}

/** What is wrong with the number that a scale shows. */
export function validateScale({ scale }: Kind, object: StoredObject): Cause[] {
  const replicas = scale === undefined ? undefined : at(object, scale.spec);
  if (scale === undefined || typeof replicas !== 'number' || replicas >= 0) return [];
  const message = `Invalid value: ${replicas}: should be a non-negative integer`;
  return [{ reason: 'FieldValueInvalid', message, field: `.${scale.spec.join('.')}` }];
}

/** The object as a changed scale asks for it. Throws a Failure. */
export function scaled(kind: Kind, object: StoredObject, wanted: Members): StoredObject {
  const { resourceVersion } = isMembers(wanted['metadata']) ? wanted['metadata'] : {};
  if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion) {
    throw modified(kind, object.metadata.name);
  }
  const replicas = Number(at(wanted, ['spec', 'replicas']) ?? 0);
  if (replicas < 0) {
    const message = `Invalid value: ${replicas}: should be a non-negative integer`;
    throw invalid(kind, object.metadata.name, [{ reason: 'FieldValueInvalid', message, field: 'spec.replicas' }]);
  }
  return withValue(object, kind.scale?.spec ?? [], replicas) as StoredObject;
}

function withValue(value: unknown, [name, ...rest]: readonly string[], leaf: unknown): unknown {
  if (name === undefined) return leaf;
  const members = isMembers(value) ? value : {};
  return { ...members, [name]: withValue(members[name], rest, leaf) };
}
