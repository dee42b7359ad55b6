import type { Cause } from './failure.ts';
import { equal, isMembers, type Members } from './json.ts';
import type { Metadata } from './stored-object.ts';

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/;
const LONGEST_NAME = 253;
const LONGEST_LABEL = 63;
/** Members that nobody but the server sets. */
const OF_THE_SERVER = [
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'managedFields',
  'selfLink',
];
const KNOWN = new Set([
  ...OF_THE_SERVER,
  'name',
  'namespace',
  'generateName',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
]);

/** The members of a `metadata` that the server knows; empty lists and maps are not stored. */
export function knownMetadata(metadata: unknown): Members {
  if (!isMembers(metadata)) return {};
  const isEmpty = (value: unknown): boolean =>
    value === null || value === '' || (Array.isArray(value) && value.length === 0) || equal(value, {});
  return Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) => KNOWN.has(name) && name !== 'managedFields' && !isEmpty(value)),
  );
}

/** What of a `metadata` is of a type that it cannot be of. */
export function malformedMetadata(metadata: unknown): Cause[] {
  if (!isMembers(metadata)) return [];
  const isText = (value: unknown): boolean => typeof value === 'string';
  const areTexts = (value: unknown): boolean =>
    value === undefined || value === null || (isMembers(value) && Object.values(value).every(isText));
  const wrong = ['labels', 'annotations'].filter((name) => !areTexts(metadata[name]));
  const { finalizers } = metadata;
  if (finalizers !== undefined && finalizers !== null && !(Array.isArray(finalizers) && finalizers.every(isText))) {
    wrong.push('finalizers');
  }
  return wrong.map((name) => ({
    reason: 'FieldValueTypeInvalid',
    message: 'Invalid value',
    field: `metadata.${name}`,
  }));
}

/** What a client asks for in the `metadata` of a new object. */
export function metadataOfNew(metadata: unknown): Members {
  return Object.fromEntries(Object.entries(knownMetadata(metadata)).filter(([name]) => !OF_THE_SERVER.includes(name)));
}

/** What is wrong with a `metadata`. */
export function validateMetadata({ name, labels = {}, annotations = {}, finalizers = [] }: Metadata): Cause[] {
  const cause = (field: string, value: string, why: string): Cause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${JSON.stringify(value)}: ${why}`,
    field: `metadata.${field}`,
  });
  const causes: Cause[] = [];
  if (!SUBDOMAIN.test(name) || name.length > LONGEST_NAME) {
    causes.push(
      cause('name', name, 'a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters'),
    );
  }
  for (const [key, value] of Object.entries(labels)) {
    if (!isQualified(key)) causes.push(cause('labels', key, 'name part must consist of alphanumeric characters'));
    if (value.length > LONGEST_LABEL)
      causes.push(cause('labels', value, `must be no more than ${LONGEST_LABEL} bytes`));
    if (value !== '' && !LABEL.test(value)) {
      causes.push(
        cause('labels', value, 'a valid label must be an empty string or consist of alphanumeric characters'),
      );
    }
  }
  for (const key of Object.keys(annotations)) {
    if (!isQualified(key.toLowerCase())) {
      causes.push(cause('annotations', key, 'name part must consist of alphanumeric characters'));
    }
  }
  for (const finalizer of finalizers) {
    if (!isQualified(finalizer)) {
      causes.push(cause('finalizers', finalizer, 'name part must consist of alphanumeric characters'));
    }
  }
  return causes;
}

function isQualified(key: string): boolean {
  const parts = key.split('/');
  const name = parts.at(-1) ?? '';
  const prefix = parts.length === 2 ? parts[0] : undefined;
  if (parts.length > 2 || !LABEL.test(name) || name.length > LONGEST_LABEL) return false;
  return prefix === undefined || SUBDOMAIN.test(prefix);
}

/** What of the `metadata` of an update is not allowed. Before, `wanted` is given what it may leave out. */
export function validateMetadataUpdate(wanted: Metadata, old: Metadata): Cause[] {
  const causes: Cause[] = [];
  for (const field of ['name', 'namespace', 'uid', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if (equal(wanted[field], old[field])) continue;
    const value = JSON.stringify(wanted[field]);
    causes.push({
      reason: 'FieldValueInvalid',
      message: `Invalid value: ${value}: field is immutable`,
      field: `metadata.${field}`,
    });
  }
  const added = (wanted.finalizers ?? []).filter((finalizer) => !(old.finalizers ?? []).includes(finalizer));
  if (old.deletionTimestamp !== undefined && added.length > 0) {
    const found = `found new finalizers []string{${added.map((one) => JSON.stringify(one)).join(', ')}}`;
    causes.push({
      reason: 'FieldValueForbidden',
      message: `Forbidden: no new finalizers can be added if the object is being deleted, ${found}`,
      field: 'metadata.finalizers',
    });
  }
  return causes;
}
