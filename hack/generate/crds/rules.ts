import { DURATION_PATTERN } from '../../../pkg/apis/duration.ts';
import { PERCENT_PATTERN } from '../../../pkg/apis/int-or-percent.ts';
import { NO_VM_CODES } from '../../../pkg/apis/machine/v1alpha1/class-change.ts';
import { TEMPLATE_HASH_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import {
  capacityMessage,
  durationMessage,
  emptyMessage,
  intOrPercentMessage,
  MESSAGES,
  moreThanAllMessage,
  negativeMessage,
} from '../../../pkg/apis/machine/v1alpha1/messages.ts';
import type { Rule } from './schema.ts';

/**
 * Every rule but those about changes (`selectorKept`) is made here. It lets pass what it would refuse as long as the fields concerned stay what they were: objects that laxer CRDs
 * have stored remain writable (finalizers, status, scale, any other field) and can be deleted. The API server's own
 * ratcheting would not do: it only skips rules of an object none of whose fields changed.
 */
function rule(
  holds: string,
  unchanged: string,
  message: string,
  { fieldPath, reason = 'FieldValueInvalid' }: { fieldPath?: string; reason?: Rule['reason'] } = {},
): Rule {
  return {
    rule: `${holds} || (oldSelf.hasValue() && ${unchanged})`,
    message,
    ...(fieldPath === undefined ? {} : { fieldPath }),
    reason,
    optionalOldSelf: true,
  };
}

/**
 * A claim that the member at each path, absence included, is what it was. Only texts, maps and lists are compared, and
 * `self` is spelled without optional access: the API server could not bound the cost otherwise.
 */
function same(...paths: string[]): string {
  return paths
    .map((path) => {
      const old = `oldSelf.${optional(path)}`;
      return `(${present(path)} ? ${old}.hasValue() && self.${path} == ${old}.value() : !${old}.hasValue())`;
    })
    .join(' && ');
}

/** A claim that the member at the path exists: `has` of each member on the way. */
function present(path: string): string {
  const members = path.split('.');
  return members.map((_, index) => `has(self.${members.slice(0, index + 1).join('.')})`).join(' && ');
}

/** `a.b` becomes `?a.?b`: an absent member on the way makes the whole absent. */
function optional(path: string): string {
  return path
    .split('.')
    .map((member) => `?${member}`)
    .join('.');
}

const LABELS = 'self.template.metadata.labels';
const HAS_LABELS = present('template.metadata.labels');
const SAME_SELECTOR = same('selector.matchLabels', 'selector.matchExpressions');

const MATCH_LABELS_HOLD =
  `(!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, ` +
  `k in ${LABELS} && ${LABELS}[k] == self.selector.matchLabels[k]))`;

const EXPRESSIONS_VALID =
  `!(${present('selector.matchExpressions')}) || self.selector.matchExpressions.all(e, ` +
  "has(e.values) && size(e.values) > 0 ? e.operator in ['In', 'NotIn'] : e.operator in ['Exists', 'DoesNotExist'])";

const SELECTOR_FILLED =
  '(has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0) || ' +
  '(has(self.selector.matchExpressions) && size(self.selector.matchExpressions) > 0)';

const MATCH_EXPRESSIONS_HOLD =
  `(!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, ` +
  `e.operator in ['Exists', 'In'] ` +
  `? e.key in ${LABELS} && (e.operator == 'Exists' || (has(e.values) && ${LABELS}[e.key] in e.values)) ` +
  `: !(e.key in ${LABELS}) || (e.operator == 'NotIn' && !(has(e.values) && ${LABELS}[e.key] in e.values))))`;

/** On the root: the object says what should exist. */
export const SPEC_PRESENT = rule('has(self.spec)', '!has(oldSelf.value().spec)', MESSAGES.specMissing, {
  fieldPath: '.spec',
  reason: 'FieldValueRequired',
});

const OLD_PHASE = 'oldSelf.status.currentStatus.phase';

/**
 * On the root of a Machine: the provider id is recorded once. Whose VM is drained and deleted with the machine follows from it. Until the
 * VM is confirmed, whoever makes it may record another one.
 */
export const PROVIDER_ID_KEPT: Rule = {
  rule:
    "!has(oldSelf.spec) || !has(oldSelf.spec.providerID) || oldSelf.spec.providerID == '' || " +
    '(has(self.spec) && has(self.spec.providerID) && self.spec.providerID == oldSelf.spec.providerID) || ' +
    `!has(oldSelf.status) || !has(oldSelf.status.currentStatus) || !has(${OLD_PHASE}) || ` +
    `${OLD_PHASE} in ['', 'CrashLoopBackOff']`,
  message: MESSAGES.providerIDChanged,
  fieldPath: '.spec.providerID',
  reason: 'FieldValueInvalid',
};

const OLD_OPERATION = 'oldSelf.status.lastOperation';

/** On the root of a Machine: see mayChangeClass. The kind of the class may change at any time, as the templates of sets do. */
export const MACHINE_CLASS_KEPT: Rule = {
  rule:
    "!has(oldSelf.spec) || !has(oldSelf.spec.class) || !has(oldSelf.spec.class.name) || oldSelf.spec.class.name == '' || " +
    '(has(self.spec) && has(self.spec.class) && has(self.spec.class.name) && self.spec.class.name == oldSelf.spec.class.name) || ' +
    "((!has(oldSelf.spec.providerID) || oldSelf.spec.providerID == '') && has(oldSelf.status) && " +
    `(!has(oldSelf.status.currentStatus) || !has(${OLD_PHASE}) || ${OLD_PHASE} in ['', 'CrashLoopBackOff']) && ` +
    `has(${OLD_OPERATION}) && has(${OLD_OPERATION}.type) && ${OLD_OPERATION}.type == 'Create' && ` +
    `has(${OLD_OPERATION}.state) && ${OLD_OPERATION}.state == 'Failed' && ` +
    `(!has(${OLD_OPERATION}.errorCode) || ${OLD_OPERATION}.errorCode in [${NO_VM_CODES.map((code) => `'${code}'`).join(', ')}]))`,
  message: MESSAGES.classChanged,
  fieldPath: '.spec.class',
  reason: 'FieldValueInvalid',
};

/** On a spec with selector and template: the selector selects the Machines that the template makes. */
export const SELECTOR_RULES: Rule[] = [
  rule('has(self.selector)', '!has(oldSelf.value().selector)', MESSAGES.selectorMissing, {
    fieldPath: '.selector',
    reason: 'FieldValueRequired',
  }),
  rule(
    `!has(self.selector) || ${SELECTOR_FILLED}`,
    `oldSelf.?selector.hasValue() && ${SAME_SELECTOR}`,
    MESSAGES.selectorEmpty,
    { fieldPath: '.selector' },
  ),
  rule(EXPRESSIONS_VALID, same('selector.matchExpressions'), MESSAGES.selectorInvalid, {
    fieldPath: '.selector.matchExpressions',
  }),
  rule(`(${HAS_LABELS} && size(${LABELS}) > 0)`, same('template.metadata.labels'), MESSAGES.templateLabelsMissing, {
    fieldPath: '.template.metadata.labels',
    reason: 'FieldValueRequired',
  }),
  rule(
    `!(${HAS_LABELS}) || size(${LABELS}) == 0 || !has(self.selector) || (${MATCH_LABELS_HOLD} && ${MATCH_EXPRESSIONS_HOLD})`,
    `${SAME_SELECTOR} && ${same('template.metadata.labels')}`,
    MESSAGES.selectorMismatch,
    { fieldPath: '.selector' },
  ),
];

const HASH_NOT_NAMED =
  `(!has(self.selector.matchLabels) || !('${TEMPLATE_HASH_LABEL}' in self.selector.matchLabels)) && ` +
  `(!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, e.key != '${TEMPLATE_HASH_LABEL}'))`;

/** On the spec of a MachineDeployment: the label that tells its MachineSets apart is left to them. */
export const HASH_LEFT_TO_SETS: Rule = rule(
  `!has(self.selector) || (${HASH_NOT_NAMED})`,
  SAME_SELECTOR,
  MESSAGES.selectorNamesHash,
  { fieldPath: '.selector' },
);

/** The selector is there, well formed, and selects what the template makes. */
const SELECTOR_SOUND = [
  'has(self.selector)',
  `(${SELECTOR_FILLED})`,
  `(${EXPRESSIONS_VALID})`,
  HAS_LABELS,
  MATCH_LABELS_HOLD,
  MATCH_EXPRESSIONS_HOLD,
].join(' && ');

/**
 * On a spec with selector and template: a selector that was sound stays what it is. Whatever it no longer selected would be let go,
 * and run on with nobody to manage it. A selector that is broken can be repaired; that one is missing now is said by another rule.
 */
function selectorKept(sameLabels: string, sound: string = SELECTOR_SOUND): Rule {
  const wasSound = sound.replaceAll(/\bself\b/g, 'oldSelf');
  return {
    rule: `!has(self.selector) || !(${wasSound}) || (${sameLabels} && ${sameOrBothEmpty('matchExpressions')})`,
    message: MESSAGES.selectorChanged,
    fieldPath: '.selector',
    reason: 'FieldValueInvalid',
  };
}

/** Absent and empty are the same to anyone who writes Go. */
function sameOrBothEmpty(member: string): string {
  const [now, before] = [`self.selector.${member}`, `oldSelf.selector.${member}`];
  return (
    `(has(${now}) && size(${now}) > 0 ? has(${before}) && ${now} == ${before} ` +
    `: !has(${before}) || size(${before}) == 0)`
  );
}

const HASH_ADDED_AT_MOST =
  `(!has(oldSelf.selector.matchLabels) || oldSelf.selector.matchLabels.all(k, ` +
  'has(self.selector.matchLabels) && k in self.selector.matchLabels && ' +
  'self.selector.matchLabels[k] == oldSelf.selector.matchLabels[k])) && ' +
  `(!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, k == '${TEMPLATE_HASH_LABEL}' || ` +
  '(has(oldSelf.selector.matchLabels) && k in oldSelf.selector.matchLabels)))';

/** On the spec of a MachineDeployment: a selector that names the hash label can be repaired too. */
export const SELECTOR_KEPT: Rule = selectorKept(
  sameOrBothEmpty('matchLabels'),
  `${SELECTOR_SOUND} && (${HASH_NOT_NAMED})`,
);

/** On the spec of a MachineSet: anyone who adopts it adds the label that tells it from its siblings. */
export const SET_SELECTOR_KEPT: Rule = selectorKept(HASH_ADDED_AT_MOST);

/** On whatever has a reference to a class at `path`: it names one. */
export function classNamed(path: string): Rule {
  const given = (member: string): string => `${present(`${path}.${member}`)} && self.${path}.${member} != ''`;
  return rule(
    `(${given('kind')} && ${given('name')})`,
    same(`${path}.kind`, `${path}.name`),
    MESSAGES.classIncomplete,
    { fieldPath: `.${path}`, reason: 'FieldValueRequired' },
  );
}

/** On the spec of a MachineDeployment: the strategy has what its type needs. */
export const STRATEGY_RULES: Rule[] = [
  rule(
    `(${present('strategy.type')} && self.strategy.type in ['RollingUpdate', 'Recreate', 'InPlaceUpdate'])`,
    same('strategy.type'),
    MESSAGES.strategyType,
    { fieldPath: '.strategy.type' },
  ),
  limitsPresent('RollingUpdate', 'rollingUpdate', MESSAGES.rollingUpdateIncomplete),
  limitsPresent('InPlaceUpdate', 'inPlaceUpdate', MESSAGES.inPlaceUpdateIncomplete),
  rule(
    `${isNotType('InPlaceUpdate')} || (${present('strategy.inPlaceUpdate.orchestrationType')} && ` +
      "self.strategy.inPlaceUpdate.orchestrationType in ['Auto', 'Manual'])",
    same('strategy.type', 'strategy.inPlaceUpdate.orchestrationType'),
    MESSAGES.orchestrationType,
    { fieldPath: '.strategy.inPlaceUpdate.orchestrationType' },
  ),
];

function isNotType(type: string): string {
  return `!(${present('strategy.type')}) || self.strategy.type != '${type}'`;
}

function limitsPresent(type: string, member: string, message: string): Rule {
  const surge = `strategy.${member}.maxSurge`;
  const unavailable = `strategy.${member}.maxUnavailable`;
  return rule(
    `${isNotType(type)} || (${present(surge)} && ${present(unavailable)})`,
    same('strategy.type', surge, unavailable),
    message,
    { fieldPath: `.strategy.${member}`, reason: 'FieldValueRequired' },
  );
}

const SAME_VALUE = 'self == oldSelf.value()';

/** On a text: a Go duration, not negative. The conversion refuses what 64 bits of nanoseconds do not hold. */
export function duration(field: string): Rule {
  return rule(
    `(self.matches('${DURATION_PATTERN}') && duration(self) >= duration('0s'))`,
    SAME_VALUE,
    durationMessage(field),
  );
}

/** On an integer: not negative. */
export function notNegative(field: string): Rule {
  return rule('self >= 0', SAME_VALUE, negativeMessage(field));
}

/** On an integer or text: a count, or a percentage. */
export function intOrPercent(field: string): Rule {
  return rule(
    `(type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('${PERCENT_PATTERN}'))`,
    SAME_VALUE,
    intOrPercentMessage(field),
  );
}

/** On an integer or text: not a percentage above 100. */
export function notMoreThanAll(field: string): Rule {
  return rule(
    `(type(self) == int || !self.matches('${PERCENT_PATTERN}') || self.matches('^0*(100|[0-9]{1,2})%$'))`,
    SAME_VALUE,
    moreThanAllMessage(field),
  );
}

/** On a map: one of its keys is `resource`. */
export function capacityNamed(resource: string): Rule {
  return rule(`'${resource}' in self`, `!('${resource}' in oldSelf.value())`, capacityMessage(resource), {
    reason: 'FieldValueRequired',
  });
}

/** On a text: not empty. */
export function notEmpty(field: string): Rule {
  return rule("self != ''", SAME_VALUE, emptyMessage(field), { reason: 'FieldValueRequired' });
}
