import type { Cause } from '../failure.ts';
import { equal, isMembers } from '../json.ts';
import type { Rule, Schema } from '../schema/schema.ts';
import { compile, type Expression, Optional } from './expression.ts';

const compiled = new Map<string, Expression>();

/** The rules of a schema that a value breaks; `old` is what it replaces, if there is anything. */
export function rulesBroken(value: unknown, old: unknown, schema: Schema, field: string): Cause[] {
  const rules = schema['x-kubernetes-validations'] ?? [];
  return rules.filter((rule) => !isKept(rule, value, old)).map((rule) => causeOf(rule, value, field));
}

function isKept({ rule, optionalOldSelf = false }: Rule, value: unknown, old: unknown): boolean {
  const isTransition = rule.includes('oldSelf');
  if (isTransition && !optionalOldSelf && old === undefined) return true;
  // Ratcheting, for rules that look at nothing else.
  if (!isTransition && old !== undefined && equal(value, old)) return true;
  const expression = compiled.get(rule) ?? compile(rule);
  compiled.set(rule, expression);
  try {
    return expression({ self: value, oldSelf: optionalOldSelf ? new Optional(old) : old }) === true;
  } catch {
    return false;
  }
}

function causeOf(
  { rule, message, reason = 'FieldValueInvalid', fieldPath = '' }: Rule,
  value: unknown,
  field: string,
): Cause {
  const text = message ?? `failed rule: ${rule}`;
  const path = field === '' && fieldPath !== '' ? fieldPath.slice(1) : `${field}${fieldPath}`;
  switch (reason) {
    case 'FieldValueRequired':
      return { reason, message: `Required value: ${text}`, field: path || '<nil>' };
    case 'FieldValueForbidden':
      return { reason, message: `Forbidden: ${text}`, field: path || '<nil>' };
    default:
      return { reason, message: `Invalid value: ${shown(value)}: ${text}`, field: path || '<nil>' };
  }
}

/** What an object holds is not shown. */
function shown(value: unknown): string {
  return isMembers(value) ? '"object"' : JSON.stringify(value);
}
