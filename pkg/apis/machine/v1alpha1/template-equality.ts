import { parseDurationNs } from '../../duration.ts';
import { isObject } from '../../members.ts';
import { TEMPLATE_HASH_LABEL } from './labels.ts';
import type { MachineConfiguration, MachineSpec, MachineTemplateSpec, NodeTemplateSpec } from './machine.ts';

/**
 * Equality of templates as the original sees it, over JSON that typed Go writers, kubectl or we have written. Go knows no
 * difference between an absent member and null, `{}`, `[]`, `""`, 0 or false, so neither may we: taking over existing
 * objects would begin a rollout. Labels and annotations are maps: there an empty value is a value.
 */

const DURATION_FIELDS = [
  'drainTimeout',
  'healthTimeout',
  'creationTimeout',
  'inPlaceUpdateTimeout',
  'machinePreserveTimeout',
] as const;

const OTHER_FIELDS = ['disableHealthTimeout', 'maxEvictRetries', 'nodeConditions'] as const;

/** The members of a Machine's spec that override flags: they reach existing Machines without a rollout. */
export const CONFIGURATION_FIELDS: readonly (keyof MachineConfiguration)[] = [...DURATION_FIELDS, ...OTHER_FIELDS];

/** What does not decide whether a set is the new one: it reaches existing Machines in place. */
const IN_PLACE_FIELDS: ReadonlySet<string> = new Set(['nodeTemplate', ...CONFIGURATION_FIELDS]);

/**
 * True when Machines of one template need not be replaced to become Machines of the other. Ignores the label
 * `machine-template-hash`, the node template, the configuration and `class.kind`; all else counts, annotations and
 * finalizers too.
 */
export function equalTemplate(a: MachineTemplateSpec | undefined, b: MachineTemplateSpec | undefined): boolean {
  return (
    equalMetadata(withoutHash(a?.metadata), withoutHash(b?.metadata)) &&
    equal(replacingPart(a?.spec), replacingPart(b?.spec))
  );
}

export function equalNodeTemplate(a: NodeTemplateSpec | undefined, b: NodeTemplateSpec | undefined): boolean {
  const { metadata: metadataA, ...restA } = a ?? {};
  const { metadata: metadataB, ...restB } = b ?? {};
  return equalMetadata(metadataA, metadataB) && equal(restA, restB);
}

/**
 * True when both override the same flags with the same values. Unset (absent or null) differs from an explicit zero,
 * false or empty text; durations are compared by value, `10m` is `10m0s`.
 */
export function equalConfiguration(a: MachineConfiguration | undefined, b: MachineConfiguration | undefined): boolean {
  return (
    DURATION_FIELDS.every((field) => equalDuration(a?.[field] ?? undefined, b?.[field] ?? undefined)) &&
    OTHER_FIELDS.every((field) => (a?.[field] ?? undefined) === (b?.[field] ?? undefined))
  );
}

function equalDuration(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const ns = parseDurationNs(a);
  return ns === undefined ? a === b : ns === parseDurationNs(b);
}

type Metadata = Readonly<Record<string, unknown>> & {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
};

function withoutHash(metadata: Metadata | undefined): Metadata {
  const { [TEMPLATE_HASH_LABEL]: _hash, ...labels } = metadata?.labels ?? {};
  return { ...metadata, labels };
}

function replacingPart(spec: MachineSpec | undefined): Record<string, unknown> {
  const kept = Object.entries(spec ?? {}).filter(([field]) => !IN_PLACE_FIELDS.has(field));
  const { kind: _kind, ...reference } = spec?.class ?? {};
  return { ...Object.fromEntries(kept), class: reference };
}

function equalMetadata(a: Metadata | undefined, b: Metadata | undefined): boolean {
  const { labels: labelsA, annotations: annotationsA, ...restA } = a ?? {};
  const { labels: labelsB, annotations: annotationsB, ...restB } = b ?? {};
  return equalMap(labelsA, labelsB) && equalMap(annotationsA, annotationsB) && equal(restA, restB);
}

type Values = Readonly<Record<string, string>>;

function equalMap(a: Values | undefined, b: Values | undefined): boolean {
  const left = a ?? {}; // Go writes null
  const right = b ?? {};
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && left[key] === right[key])
  );
}

/** Deep equality in which all empty values are one. */
function equal(a: unknown, b: unknown): boolean {
  if (isBlank(a) || isBlank(b)) return isBlank(a) && isBlank(b);
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => equal(item, b[i]));
  if (!isObject(a) || !isObject(b)) return a === b;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => equal(a[key], b[key]));
}

function isBlank(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0 || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.values(value).every(isBlank);
}
