import type { Rule } from '../schema.ts';

/** On the root, where no path can name the name: the name can be a part of other names. */
export const LABEL_NAME: Rule = {
  rule: "size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",
  message: 'metadata.name must be at most 63 characters of a-z, 0-9 and -',
  reason: 'FieldValueInvalid',
};

function refused(rule: string, message: string, fieldPath?: string): Rule {
  return { rule, message, ...(fieldPath !== undefined && { fieldPath }), reason: 'FieldValueInvalid' };
}

const textOf = (one: 'self' | 'oldSelf', ...members: readonly string[]): string => {
  const present = members.map((_, index) => `has(${[one, ...members.slice(0, index + 1)].join('.')})`).join(' && ');
  return `(${present} ? ${[one, ...members].join('.')} : '')`;
};
const unchanged = (...members: readonly string[]): string =>
  `${textOf('self', ...members)} == ${textOf('oldSelf', ...members)}`;

/** On a reference: it names what it has named before. */
export const CLASS_KEPT: Rule = refused('self == oldSelf', 'cannot be changed; create another Machine');

/** On an entry of a list: exactly one of these members. */
export function exactlyOne(...sources: readonly string[]): Rule {
  const given = sources.map((source) => `has(self.${source})`).join(', ');
  const names = `${sources.slice(0, -1).join(', ')} and ${sources.at(-1)}`;
  return refused(`[${given}].exists_one(given, given)`, `exactly one of ${names} must be set`);
}

const IMAGE = 'localDisk.image';
const hasImage = (one: string): string => `has(${one}.localDisk) && has(${one}.${IMAGE}) && ${one}.${IMAGE} != ''`;

/** On a volume of a Machine: the disk that was made of an image stays what it is. */
export const IMAGE_KEPT: Rule = refused(
  `!(${hasImage('oldSelf')}) || (${hasImage('self')} && self.${IMAGE} == oldSelf.${IMAGE})`,
  'the image of a disk cannot be changed; create another Machine',
  '.localDisk',
);

/** On a toleration: what holds for each key asks for no value. */
export const KEY_NAMED: Rule = refused(
  "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
  'without a key, the operator must be Exists',
);

/** On the spec of a Machine. */
export const SPEC_RULES: readonly Rule[] = [
  refused(
    '!has(oldSelf.machinePoolRef) || (has(self.machinePoolRef) && self.machinePoolRef.name == oldSelf.machinePoolRef.name)',
    'cannot be changed after it is set; create another Machine',
    '.machinePoolRef',
  ),
  refused(unchanged('image'), 'cannot be changed; create another Machine', '.image'),
  refused(
    unchanged('guestConfig', 'hostname'),
    'the hostname can only be set when the Machine is created',
    '.guestConfig',
  ),
  refused(
    '!has(self.volumes) || self.volumes.all(one, !has(one.device) || ' +
      'self.volumes.exists_one(other, has(other.device) && other.device == one.device))',
    'two volumes cannot have the same device',
    '.volumes',
  ),
  refused(
    `!has(oldSelf.volumes) || oldSelf.volumes.all(old, !(${hasImage('old')}) || ` +
      '(has(self.volumes) && self.volumes.exists(one, one.name == old.name)))',
    'a disk with an image cannot be removed: delete the Machine',
    '.volumes',
  ),
];

/** On the root of a Machine: a volume that is still being detached is not attached again under its name. */
export const DETACHED_FIRST: Rule = refused(
  '!has(self.spec.volumes) || !has(self.status) || !has(self.status.volumes) || ' +
    'self.spec.volumes.all(one, !self.status.volumes.exists(known, known.name == one.name) || ' +
    '(has(oldSelf.spec.volumes) && oldSelf.spec.volumes.exists(old, old.name == one.name)))',
  'a volume with this name is still attached: wait until it is removed from status.volumes, or use another name',
  '.spec.volumes',
);
