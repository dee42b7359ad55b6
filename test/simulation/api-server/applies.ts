import type { APIRequest } from './api-server.ts';
import { badRequest, invalid, notSimulated } from './failure.ts';
import { copyOf, isMembers, type Members } from './json.ts';
import { type Kind, METADATA_LISTS } from './kinds.ts';
import type { Objects } from './objects.ts';
import { afterApply, takesOver } from './patch/server-side-apply.ts';
import type { Route } from './route.ts';
import { unknownFields } from './schema/prepare.ts';
import { type Schema, schemaOf } from './schema/schema.ts';
import type { StoredObject } from './stored-object.ts';
import type { Writes } from './writes.ts';

/** Server-side apply: who applied what is remembered here, in place of `metadata.managedFields`. */
export class Applies {
  readonly #objects: Objects;
  readonly #writes: Writes;
  /** What was applied last, by UID and manager. */
  readonly #applied = new Map<string, Map<string, Members>>();

  constructor(objects: Objects, writes: Writes) {
    this.#objects = objects;
    this.#writes = writes;
    objects.onChange((_kind, { type, object }) => {
      if (type === 'DELETED') this.#applied.delete(object.metadata.uid);
    });
  }

  /** Changes the object, or creates it where there is none. Throws a Failure. */
  apply(
    { kind, namespace, name = '', subresource }: Route,
    old: StoredObject | undefined,
    { body }: APIRequest,
    query: URLSearchParams,
  ): { readonly object: StoredObject; readonly isNew: boolean } {
    const wanted = wantedBy(kind, body);
    const manager = managerIn(query);
    const { name: given = name } = metadataOf(wanted) as { readonly name?: string };
    if (given !== name) {
      throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
    }
    const before = old === undefined ? undefined : this.#applied.get(old.metadata.uid);
    const object =
      old === undefined
        ? this.#writes.create(kind, namespace, { ...wanted, metadata: { ...metadataOf(wanted), name } })
        : this.#writes.update(kind, old, this.#changed(kind, old, wanted, manager, query), subresource);
    if (!this.#objects.isDryRun) {
      this.#applied.set(object.metadata.uid, new Map([...(before ?? []), [manager, copyOf(wanted)]]));
    }
    return { object, isNew: old === undefined };
  }

  #changed(kind: Kind, old: StoredObject, wanted: Members, manager: string, query: URLSearchParams): StoredObject {
    const known = this.#applied.get(old.metadata.uid) ?? new Map<string, Members>();
    const last = known.get(manager) ?? {};
    const others = [...known].flatMap(([other, body]) => (other === manager ? [] : [body]));
    if (query.get('force') !== 'true' && takesOver(old, { wanted, last })) {
      throw notSimulated('conflicts of server-side apply');
    }
    return afterApply(old, { wanted, last, others }, kind.lists ?? METADATA_LISTS) as StoredObject;
  }
}

/** Throws a Failure. */
function managerIn(query: URLSearchParams): string {
  const manager = query.get('fieldManager') ?? '';
  if (manager !== '') return manager;
  throw invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
    {
      reason: 'FieldValueRequired',
      message: 'Required value: is required for apply patch',
      field: 'fieldManager',
    },
  ]);
}

/** Throws a Failure. */
function wantedBy({ schema }: Kind, body: unknown): Members {
  if (body === undefined) throw notSimulated('server-side apply of YAML');
  if (!isMembers(body)) throw badRequest('the body of an apply is an object');
  if (schema === undefined) return body;
  if (unknownFields(body, schema).length > 0) throw notSimulated('server-side apply of fields that are not defined');
  if (hasKeyedList(body, schema)) throw notSimulated('server-side apply of lists whose entries have keys');
  return body;
}

function metadataOf({ metadata }: Members): Members {
  return isMembers(metadata) ? metadata : {};
}

function hasKeyedList(value: unknown, schema: Schema | undefined): boolean {
  if (schema === undefined) return false;
  if (Array.isArray(value)) {
    const { 'x-kubernetes-list-type': type = 'atomic', items } = schema;
    return type !== 'atomic' || value.some((item) => hasKeyedList(item, items));
  }
  return (
    isMembers(value) && Object.entries(value).some(([name, member]) => hasKeyedList(member, schemaOf(schema, name)))
  );
}
