import type { Cause } from './failure.ts';
import { at, isMembers, type Members } from './json.ts';
import type { Kind } from './kinds.ts';
import type { StoredObject } from './stored-object.ts';

/** Grace of pods that ask for none. */
const POD_GRACE_S = 30;

/** What the server adds to objects of built-in kinds, in place: of its many defaults those that anything simulated reads. */
export function addBuiltInDefaults({ plural }: Kind, object: StoredObject, old: StoredObject | undefined): void {
  if (plural === 'secrets') {
    object['type'] ??= 'Opaque';
    encodeStrings(object);
  }
  if (plural === 'nodes') object['spec'] ??= {};
  if (plural === 'leases') object['spec'] ??= {};
  if (plural === 'namespaces') {
    object['spec'] = old === undefined ? { finalizers: ['kubernetes'] } : old['spec'];
    if (old === undefined) object['status'] = { phase: 'Active' };
    object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name };
  }
  if (plural === 'pods') {
    object['spec'] = {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: POD_GRACE_S,
      ...membersOf(object['spec']),
    };
    object['status'] = { phase: 'Pending', ...membersOf(object['status']) };
  }
}

/** `stringData` is written, and never read. */
function encodeStrings(secret: StoredObject): void {
  const { stringData, data } = secret;
  delete secret['stringData'];
  if (!isMembers(stringData)) return;
  const encoded = Object.entries(stringData).map(([key, value]) => [
    key,
    Buffer.from(String(value)).toString('base64'),
  ]);
  secret['data'] = { ...membersOf(data), ...(Object.fromEntries(encoded) as Members) };
}

const membersOf = (value: unknown): Members => (isMembers(value) ? value : {});

/** What of an update of a built-in kind is refused: of many rules those that somebody could mean to break. */
export function validateBuiltIn({ plural }: Kind, object: StoredObject, old: StoredObject | undefined): Cause[] {
  const path = ['spec', 'providerID'];
  const before = at(old, path);
  if (plural !== 'nodes' || before === undefined || before === '' || at(object, path) === before) return [];
  const message = 'Forbidden: node updates may not change providerID except from "" to valid';
  return [{ reason: 'FieldValueForbidden', message, field: 'spec.providerID' }];
}
