import { MACHINE_CONDITIONS, VM_CAPACITY } from './machine.ts';

/** What the CRDs that the original ships do not have. */
const OUR_KEYWORDS: ReadonlySet<string> = new Set([
  'x-kubernetes-validations',
  'default',
  'maxItems',
  'maxLength',
  'maxProperties',
]);

/**
 * A copy without what this project adds: the API server then stores whatever it stored for the original. Columns of `kubectl get` stay: they
 * change nothing that is stored.
 */
export function withoutAdditions(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutAdditions);
  if (typeof schema !== 'object' || schema === null) return schema;

  const isFreeForm = 'x-kubernetes-preserve-unknown-fields' in schema;
  const kept = Object.entries(schema).filter(
    ([key]) =>
      !OUR_KEYWORDS.has(key) &&
      key !== MACHINE_CONDITIONS &&
      key !== VM_CAPACITY &&
      !(key === 'properties' && isFreeForm && isMetadata(schema)),
  );
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutAdditions(value)]));
}

/** The metadata of templates are free-form in the original: their labels are not checked at all. */
function isMetadata(schema: object): boolean {
  return 'properties' in schema && Object.hasOwn(schema.properties as object, 'labels');
}
