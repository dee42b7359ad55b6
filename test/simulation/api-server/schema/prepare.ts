import { copyOf, isMembers, type Members } from '../json.ts';
import { type Schema, schemaOf } from './schema.ts';

/** Members of every object that no schema describes in full. */
const OF_ALL: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** Drops what the schema does not know and adds its defaults, in place; `metadata` of the object itself is left alone. */
export function prepare(object: Members, schema: Schema): void {
  prune(object, schema, OF_ALL);
  addDefaults(object, schema);
}

function prune(object: Members, schema: Schema, kept: ReadonlySet<string>): void {
  for (const { members, name } of unknownIn(object, schema, '', kept)) delete members[name];
}

/** Paths of what the schema of an object does not know. */
export function unknownFields(object: Members, schema: Schema): string[] {
  return unknownIn(object, schema, '', OF_ALL).map(({ path }) => path);
}

interface UnknownField {
  /** In which it stands. */
  readonly members: Members;
  readonly name: string;
  readonly path: string;
}

function unknownIn(
  value: unknown,
  schema: Schema,
  path: string,
  kept: ReadonlySet<string> = new Set(),
): readonly UnknownField[] {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : value.flatMap((item, i) => unknownIn(item, items, `${path}[${i}]`));
  }
  if (!isMembers(value) || schema['x-kubernetes-int-or-string'] === true) return [];
  const { additionalProperties, 'x-kubernetes-preserve-unknown-fields': preserves = false } = schema;
  return Object.keys(value).flatMap((name): readonly UnknownField[] => {
    if (kept.has(name)) return [];
    const inner = schemaOf(schema, name);
    const at = path === '' ? name : `${path}.${name}`;
    if (inner !== undefined) return unknownIn(value[name], inner, at);
    return preserves || additionalProperties === true ? [] : [{ members: value, name, path: at }];
  });
}

function addDefaults(value: unknown, schema: Schema): void {
  if (Array.isArray(value)) {
    if (schema.items !== undefined) for (const item of value) addDefaults(item, schema.items);
    return;
  }
  if (!isMembers(value)) return;
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    // Null is dropped where it is not allowed, and a default takes its place.
    if (value[name] === null && inner.nullable !== true) delete value[name];
    if (value[name] === undefined && inner.default !== undefined) value[name] = copyOf(inner.default);
    if (value[name] !== undefined) addDefaults(value[name], inner);
  }
  if (typeof schema.additionalProperties !== 'object') return;
  for (const name of Object.keys(value)) {
    if (schema.properties?.[name] === undefined) addDefaults(value[name], schema.additionalProperties);
  }
}
