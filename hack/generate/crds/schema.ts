/** A structural schema, as far as our kinds need it; members are spelled as in the CRD. */
export interface Schema {
  description?: string;
  type?: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  format?: 'int32' | 'int64' | 'date-time';
  pattern?: string;
  default?: number | string;
  enum?: readonly string[];
  anyOf?: { type: 'integer' | 'string' }[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  maxItems?: number;
  maxProperties?: number;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  required?: string[];
  'x-kubernetes-int-or-string'?: true;
  'x-kubernetes-preserve-unknown-fields'?: true;
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-map-type'?: 'atomic';
  'x-kubernetes-validations'?: Rule[];
}

/** A CEL rule. All of ours spare what was stored before them: see rules.ts. */
export interface Rule {
  rule: string;
  message: string;
  fieldPath?: string;
  reason: 'FieldValueInvalid' | 'FieldValueRequired';
  /** Absent: only judges changes of what was there before. */
  optionalOldSelf?: true;
}

/** A text. */
export function text(description: string, more: Schema = {}): Schema {
  return { description, type: 'string', ...more };
}

/** A moment, RFC 3339. */
export function time(description: string): Schema {
  return { description, type: 'string', format: 'date-time' };
}

/** A yes or no. */
export function flag(description: string): Schema {
  return { description, type: 'boolean' };
}

/** A 32-bit integer. */
export function int32(description: string, more: Schema = {}): Schema {
  return { description, type: 'integer', format: 'int32', ...more };
}

/** A 64-bit integer. */
export function int64(description: string, more: Schema = {}): Schema {
  return { description, type: 'integer', format: 'int64', ...more };
}

/** An object of known members. */
export function object(description: string, properties: Record<string, Schema>, more: Schema = {}): Schema {
  return { description, type: 'object', properties, ...more };
}

/** Names mapped to values of one kind. */
export function mapOf(description: string, values: Schema, more: Schema = {}): Schema {
  return { description, type: 'object', additionalProperties: values, ...more };
}

/** A list of values of one kind. */
export function listOf(description: string, items: Schema, more: Schema = {}): Schema {
  return { description, type: 'array', items, ...more };
}

/** An amount as Kubernetes spells it. */
export function quantity(): Schema {
  return {
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    pattern:
      '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$',
    'x-kubernetes-int-or-string': true,
  };
}

/** `a, b or c.`, as a description. */
export function oneOf(values: readonly string[]): string {
  return `${values.slice(0, -1).join(', ')} or ${values.at(-1)}.`;
}
