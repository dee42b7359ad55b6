import { addBuiltInDefaults, validateBuiltIn } from './built-in.ts';
import {
  alreadyExists,
  badRequest,
  type Cause,
  conflict,
  Failure,
  forbidden,
  invalid,
  modified,
  notFound,
} from './failure.ts';
import { copyOf, equal, isMembers, type Members } from './json.ts';
import { apiVersionOf, type Kind } from './kinds.ts';
import {
  knownMetadata,
  malformedMetadata,
  metadataOfNew,
  validateMetadata,
  validateMetadataUpdate,
} from './metadata.ts';
import type { Objects } from './objects.ts';
import { prepare } from './schema/prepare.ts';
import { validate } from './schema/validate.ts';
import { validateScale } from './scale.ts';
import { finalizersOf, keyOf, type Metadata, type StoredObject } from './stored-object.ts';

/** What the server gives to new objects. */
export interface ObjectSource {
  /** RFC 3339, whole seconds. */
  readonly timestamp: () => string;
  readonly uid: () => string;
  /** What follows a generateName. */
  readonly suffix: () => string;
}

/** The longest generateName that is not cut. */
const LONGEST_PREFIX = 63 - 5;

/** POST, PUT and PATCH: what becomes of an object that a client sends. */
export class Writes {
  readonly #objects: Objects;
  readonly #source: ObjectSource;
  readonly #namespaces: Kind | undefined;

  constructor(objects: Objects, source: ObjectSource, namespaces: Kind | undefined) {
    this.#objects = objects;
    this.#source = source;
    this.#namespaces = namespaces;
  }

  /** Throws a Failure. */
  create(kind: Kind, namespace: string | undefined, sent: unknown): StoredObject {
    const body = bodyFor(kind, sent);
    const given = knownMetadata(body['metadata']);
    if (namespace !== undefined && (given['namespace'] ?? namespace) !== namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
    }
    if (given['resourceVersion'] !== undefined) {
      throw new Failure(500, '', 'resourceVersion should not be set on objects to be created');
    }
    this.#requireNamespace(kind, namespace, typeof given['name'] === 'string' ? given['name'] : '');
    const { timestamp, uid, suffix } = this.#source;
    const { name, generateName, ...others } = metadataOfNew(body['metadata']);
    if (name === undefined && generateName === undefined) {
      throw invalid(kind, '', [
        {
          reason: 'FieldValueRequired',
          message: 'Required value: name or generateName is required',
          field: 'metadata.name',
        },
      ]);
    }
    const object: StoredObject = {
      ...copyOf(body),
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: {
        ...(copyOf(others) as Partial<Metadata>),
        ...(generateName === undefined ? {} : { generateName: generateName as string }),
        name: (name as string | undefined) ?? `${String(generateName).slice(0, LONGEST_PREFIX)}${suffix()}`,
        ...(namespace === undefined ? {} : { namespace }),
        uid: uid(),
        resourceVersion: '',
        creationTimestamp: timestamp(),
        ...(kind.hasGeneration ? { generation: 1 } : {}),
      },
    };
    if (kind.hasStatus && kind.schema !== undefined) delete object['status'];
    if (kind.schema === undefined) addBuiltInDefaults(kind, object, undefined);
    else prepare(object, kind.schema);
    this.#require(kind, object, undefined);
    if (this.#objects.of(kind).get(keyOf(object.metadata)) !== undefined)
      throw alreadyExists(kind, object.metadata.name);
    return this.#objects.put(kind, object);
  }

  /** PUT. Throws a Failure. */
  replace(kind: Kind, old: StoredObject, sent: unknown, subresource: string | undefined): StoredObject {
    const body = bodyFor(kind, sent);
    const { uid, resourceVersion } = knownMetadata(body['metadata']);
    const { metadata } = old;
    if (uid !== undefined && uid !== metadata.uid) {
      throw conflict(
        kind,
        metadata.name,
        `Precondition failed: UID in precondition: ${uid as string}, UID in object meta: ${metadata.uid}`,
      );
    }
    if (resourceVersion === undefined && kind.schema !== undefined) {
      throw invalid({ ...kind, kind: kind.plural }, metadata.name, [
        {
          reason: 'FieldValueInvalid',
          message: 'Invalid value: 0: must be specified for an update',
          field: 'metadata.resourceVersion',
        },
      ]);
    }
    return this.update(kind, old, copyOf(body) as StoredObject, subresource);
  }

  /** Stores what a PUT or PATCH makes of an object, unless that is what it is. Throws a Failure. */
  update(kind: Kind, old: StoredObject, wanted: StoredObject, subresource: string | undefined): StoredObject {
    const before = old.metadata;
    const malformed = malformedMetadata(wanted['metadata']);
    if (malformed.length > 0) throw invalid(kind, before.name, malformed);
    const asked = knownMetadata(wanted['metadata']) as Partial<Metadata>;
    if (asked.name !== undefined && asked.name !== before.name) {
      throw badRequest(`the name of the object (${asked.name}) does not match the name on the URL (${before.name})`);
    }
    if (asked.namespace !== undefined && asked.namespace !== before.namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
    }
    if (asked.resourceVersion !== undefined && asked.resourceVersion !== before.resourceVersion) {
      throw modified(kind, before.name);
    }
    const metadata: Metadata = {
      ...asked,
      name: asked.name ?? before.name,
      uid: asked.uid ?? before.uid,
      resourceVersion: before.resourceVersion,
      creationTimestamp: before.creationTimestamp,
      ...(before.namespace !== undefined && { namespace: asked.namespace ?? before.namespace }),
      ...(before.generation !== undefined && { generation: before.generation }),
      ...(before.deletionTimestamp !== undefined && { deletionTimestamp: before.deletionTimestamp }),
      ...(before.deletionGracePeriodSeconds !== undefined && {
        deletionGracePeriodSeconds: before.deletionGracePeriodSeconds,
      }),
    };
    if (before.generation === undefined) delete metadata.generation;
    const object = partsOf(kind, old, { ...wanted, apiVersion: old.apiVersion, kind: old.kind, metadata }, subresource);
    if (kind.schema === undefined) addBuiltInDefaults(kind, object, old);
    else prepare(object, kind.schema);
    const refused = validateMetadataUpdate(object.metadata, before);
    if (refused.length > 0) throw invalid(kind, before.name, refused);
    this.#require(kind, object, old);
    if (equal(object, old)) return old;
    if (kind.hasGeneration && !equal(specOf(kind, object), specOf(kind, old))) {
      object.metadata.generation = (before.generation ?? 0) + 1;
    }
    return this.#store(kind, object, old);
  }

  /** PUT of `finalize` of a Namespace: what its content was deleted for. */
  finalize(kind: Kind, old: StoredObject, sent: unknown): StoredObject {
    const { uid, resourceVersion } = knownMetadata(bodyFor(kind, sent)['metadata']);
    if (uid !== undefined && uid !== old.metadata.uid) throw notFound(kind, old.metadata.name);
    if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion) {
      throw modified(kind, old.metadata.name);
    }
    const finalizers = finalizersOf(sent);
    const object: StoredObject = { ...copyOf(old), spec: finalizers.length === 0 ? {} : { finalizers } };
    return equal(object, old) ? old : this.#store(kind, object, old);
  }

  #store(kind: Kind, object: StoredObject, old: StoredObject): StoredObject {
    if (!this.#isReleased(object)) return this.#objects.put(kind, object);
    // Who watches sees its last state as it was stored.
    this.#objects.remove(kind, old);
    return object;
  }

  /** Whether nothing holds an object that is being deleted. */
  #isReleased(object: StoredObject): boolean {
    const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
    const held = finalizers.length + finalizersOf(object).length;
    return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && held === 0;
  }

  #require(kind: Kind, object: StoredObject, old: StoredObject | undefined): void {
    const isSame = old !== undefined && equal(object.metadata, old.metadata);
    const causes: Cause[] = [
      ...(isSame ? [] : validateMetadata(object.metadata)),
      ...(kind.schema === undefined ? validateBuiltIn(kind, object, old) : validate(object, old, kind.schema)),
      ...validateScale(kind, object),
    ];
    if (causes.length > 0) throw invalid(kind, object.metadata.name, causes);
  }

  #requireNamespace(kind: Kind, namespace: string | undefined, name: string): void {
    if (namespace === undefined || this.#namespaces === undefined) return;
    const found = this.#objects.of(this.#namespaces).get(keyOf({ name: namespace }));
    if (found === undefined) throw notFound(this.#namespaces, namespace);
    if (found.metadata.deletionTimestamp !== undefined) {
      const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
      const message = `namespace ${namespace} is being terminated`;
      throw forbidden(kind, name, why, [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }]);
    }
  }
}

/** What a client sent, if it is such an object. Throws a Failure. */
function bodyFor(kind: Kind, sent: unknown): Members {
  if (!isMembers(sent)) throw badRequest('the object provided is unrecognized');
  const apiVersion = apiVersionOf(kind);
  // Kinds of definitions have to be named; those built in are known by the path.
  const isNamed = sent['apiVersion'] !== undefined || sent['kind'] !== undefined || kind.schema !== undefined;
  if (kind.schema !== undefined && sent['apiVersion'] === apiVersion && sent['kind'] !== kind.kind) {
    const message = `Invalid value: "${String(sent['kind'])}": must be ${kind.kind}`;
    throw invalid({ ...kind, kind: String(sent['kind']) }, '', [
      { reason: 'FieldValueInvalid', message, field: 'kind' },
    ]);
  }
  if (isNamed && (sent['apiVersion'] !== apiVersion || sent['kind'] !== kind.kind)) {
    throw badRequest(`the object provided is unrecognized (must be of type ${kind.kind})`);
  }
  return sent;
}

/** The parts of an object that a write may change: `status` has its own subresource, which changes nothing else. */
function partsOf(kind: Kind, old: StoredObject, wanted: StoredObject, subresource: string | undefined): StoredObject {
  if (!kind.hasStatus) return wanted;
  if (subresource === 'status') {
    const status = { status: wanted['status'] };
    // Of kinds of definitions `metadata` stays as it is; of others all but the spec may be changed.
    const result: StoredObject =
      kind.schema === undefined ? { ...wanted, spec: old['spec'] } : { ...copyOf(old), ...status };
    if (result['status'] === undefined) delete result['status'];
    return result;
  }
  const result = { ...wanted, status: old['status'] };
  if (old['status'] === undefined) delete (result as Members)['status'];
  return result;
}

/** What counts for the generation. */
function specOf({ hasStatus }: Kind, object: StoredObject): Members {
  const { metadata: _, ...spec } = object as Members;
  if (hasStatus) delete spec['status'];
  return spec;
}
