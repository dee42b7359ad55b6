import type { Cause } from '../failure.ts';
import { equal, isMembers } from '../json.ts';
import { rulesBroken } from '../rules/rules.ts';
import { type Schema, schemaOf } from './schema.ts';

const INT32 = 2 ** 31;

/**
 * What is wrong with a value, beside the value that it replaces. What has not changed is not refused (ratcheting): an object that was
 * stored under other rules stays writable.
 */
export function validate(value: unknown, old: unknown, schema: Schema, field = ''): Cause[] {
  if (old !== undefined && equal(value, old)) return [];
  const wrong = shapeOf(value, schema, field);
  if (wrong !== undefined) return [wrong];
  const inner = Array.isArray(value)
    ? value.flatMap((item, i) =>
        schema.items === undefined ? [] : validate(item, matching(old, item, schema), schema.items, `${field}[${i}]`),
      )
    : isMembers(value)
      ? Object.entries(value).flatMap(([name, member]) => {
          const known = schemaOf(schema, name);
          if (known === undefined) return [];
          return validate(member, isMembers(old) ? old[name] : undefined, known, childOf(field, name, schema));
        })
      : [];
  // Rules are looked at only where the rest is as it should be.
  const all = [...inner, ...duplicates(value, schema, field)];
  return all.length > 0 ? all : [...missing(value, schema, field), ...rulesBroken(value, old, schema, field)];
}

function childOf(field: string, name: string, { properties }: Schema): string {
  if (properties?.[name] === undefined) return `${field}[${name}]`;
  return field === '' ? name : `${field}.${name}`;
}

/** Entries of lists without keys are new ones whenever the list has changed. */
function matching(old: unknown, item: unknown, schema: Schema): unknown {
  if (!Array.isArray(old)) return undefined;
  const keys = schema['x-kubernetes-list-map-keys'];
  if (schema['x-kubernetes-list-type'] !== 'map' || keys === undefined) return undefined;
  const isSame = (other: unknown): boolean =>
    isMembers(other) && isMembers(item) && keys.every((key) => equal(other[key], item[key]));
  return (old as unknown[]).find(isSame);
}

/** Entries of a list that have the keys of an earlier one. */
function duplicates(value: unknown, schema: Schema, field: string): Cause[] {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (!Array.isArray(value) || schema['x-kubernetes-list-type'] !== 'map' || keys === undefined) return [];
  const known = new Set<string>();
  return value.flatMap((item, i) => {
    const key = JSON.stringify(keys.map((name) => (isMembers(item) ? item[name] : undefined)));
    if (!known.has(key)) {
      known.add(key);
      return [];
    }
    return [{ reason: 'FieldValueDuplicate', message: `Duplicate value: ${key}`, field: `${field}[${i}]` }];
  });
}

function missing(value: unknown, { required = [] }: Schema, field: string): Cause[] {
  if (!isMembers(value)) return [];
  return required
    .filter((name) => value[name] === undefined)
    .map((name) => ({
      reason: 'FieldValueRequired',
      message: 'Required value',
      field: field === '' ? name : `${field}.${name}`,
    }));
}

function shapeOf(value: unknown, schema: Schema, field: string): Cause | undefined {
  const cause = (reason: string, message: string): Cause => ({
    reason,
    message,
    field: field === '' ? '<nil>' : field,
  });
  const shown = JSON.stringify(value);
  if (value === null && schema.nullable === true) return undefined;
  const type = typeOf(value);
  if (!isOfType(type, schema)) {
    const wanted = schema['x-kubernetes-int-or-string'] === true ? 'integer,string' : (schema.type ?? '');
    return cause(
      'FieldValueTypeInvalid',
      `Invalid value: "${type}": ${field} in body must be of type ${wanted}: "${type}"`,
    );
  }
  const says = (what: string): Cause => cause('FieldValueInvalid', `Invalid value: ${shown}: ${field} in body ${what}`);
  if (schema.enum !== undefined && !schema.enum.some((one) => equal(one, value))) {
    const values = schema.enum.map((one) => JSON.stringify(one)).join(', ');
    return cause('FieldValueNotSupported', `Unsupported value: ${shown}: supported values: ${values}`);
  }
  if (typeof value === 'number') {
    if (schema.minimum !== undefined && value < schema.minimum) {
      return says(`should be greater than or equal to ${schema.minimum}`);
    }
    if (schema.maximum !== undefined && value > schema.maximum) {
      return says(`should be less than or equal to ${schema.maximum}`);
    }
    if (schema.format === 'int32' && (value >= INT32 || value < -INT32)) return says('must be of type int32');
  }
  if (typeof value === 'string') {
    const length = Array.from(value).length;
    if (schema.maxLength !== undefined && length > schema.maxLength) {
      return cause('FieldValueTooLong', `Too long: may not be more than ${schema.maxLength} bytes`);
    }
    if (schema.minLength !== undefined && length < schema.minLength) {
      return says(`should be at least ${schema.minLength} chars long`);
    }
    if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value)) {
      return says(`should match '${schema.pattern}'`);
    }
  }
  if (Array.isArray(value)) {
    if (schema.maxItems !== undefined && value.length > schema.maxItems) {
      return cause('FieldValueTooMany', `Too many: ${value.length}: must have at most ${schema.maxItems} items`);
    }
    if (schema.minItems !== undefined && value.length < schema.minItems) {
      return says(`should have at least ${schema.minItems} items`);
    }
  }
  if (isMembers(value) && schema.maxProperties !== undefined) {
    const count = Object.keys(value).length;
    if (count > schema.maxProperties) {
      return cause('FieldValueTooMany', `Too many: ${count}: must have at most ${schema.maxProperties} items`);
    }
  }
  return undefined;
}

function isOfType(type: string, schema: Schema): boolean {
  if (schema['x-kubernetes-int-or-string'] === true) return type === 'integer' || type === 'string';
  if (schema.type === undefined) return true;
  return type === schema.type || (schema.type === 'number' && type === 'integer');
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}
