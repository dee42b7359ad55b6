import { copyOf, isMembers, type Members } from '../json.ts';
import { type Schema, schemaOf } from './schema.ts';

/** Members of every object that no schema describes in full. */
const OF_ALL: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** Drops what the schema does not know and adds its defaults, in place; `metadata` of the object itself is left alone. */
export function prepare(object: Members, schema: Schema): void {
  prune(object, schema, OF_ALL);
  addDefaults(object, schema);
}

function prune(value: unknown, schema: Schema, kept: ReadonlySet<string> = new Set()): void {
  if (Array.isArray(value)) {
    if (schema.items !== undefined) for (const item of value) prune(item, schema.items);
    return;
  }
  if (!isMembers(value) || schema['x-kubernetes-int-or-string'] === true) return;
  const { additionalProperties, 'x-kubernetes-preserve-unknown-fields': preserves = false } = schema;
  for (const name of Object.keys(value)) {
    if (kept.has(name)) continue;
    const inner = schemaOf(schema, name);
    if (inner !== undefined) prune(value[name], inner);
    else if (!preserves && additionalProperties !== true) delete value[name];
  }
}

function addDefaults(value: unknown, schema: Schema): void {
  if (Array.isArray(value)) {
    if (schema.items !== undefined) for (const item of value) addDefaults(item, schema.items);
    return;
  }
  if (!isMembers(value)) return;
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    // Null is dropped where it is not allowed, and the default takes its place.
    if (value[name] === null && inner.nullable !== true && inner.default !== undefined) delete value[name];
    if (value[name] === undefined && inner.default !== undefined) value[name] = copyOf(inner.default);
    if (value[name] !== undefined) addDefaults(value[name], inner);
  }
  if (typeof schema.additionalProperties !== 'object') return;
  for (const name of Object.keys(value)) {
    if (schema.properties?.[name] === undefined) addDefaults(value[name], schema.additionalProperties);
  }
}
