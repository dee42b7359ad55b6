import { DURATION_PATTERN } from '../../../pkg/apis/duration.ts';
import { PERCENT_PATTERN } from '../../../pkg/apis/int-or-percent.ts';
import {
  capacityMessage,
  durationMessage,
  emptyMessage,
  intOrPercentMessage,
  MESSAGES,
  negativeMessage,
} from '../../../pkg/apis/machine/v1alpha1/messages.ts';
import type { Rule } from './schema.ts';

/**
 * Every rule lets pass what it would refuse as long as the fields concerned stay what they were: objects that laxer CRDs
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

/** A claim that the member at each path, absence included, is what it was. */
function same(...paths: string[]): string {
  return paths.map((path) => `self.${optional(path)} == oldSelf.${optional(path)}`).join(' && ');
}

/** `a.b` becomes `?a.?b`: an absent member on the way makes the whole absent. */
function optional(path: string): string {
  return path
    .split('.')
    .map((member) => `?${member}`)
    .join('.');
}

const LABELS = 'self.?template.?metadata.?labels.orValue({})';
const MATCH_LABELS = 'self.?selector.?matchLabels.orValue({})';
const MATCH_EXPRESSIONS = 'self.?selector.?matchExpressions.orValue([])';

/** On the root: the object says what should exist. */
export const SPEC_PRESENT = rule('has(self.spec)', '!has(oldSelf.value().spec)', MESSAGES.specMissing, {
  fieldPath: '.spec',
  reason: 'FieldValueRequired',
});

/** On a spec with selector and template: the selector selects the Machines that the template makes. */
export const SELECTOR_RULES: Rule[] = [
  rule('has(self.selector)', '!has(oldSelf.value().selector)', MESSAGES.selectorMissing, {
    fieldPath: '.selector',
    reason: 'FieldValueRequired',
  }),
  rule(
    `!has(self.selector) || size(${MATCH_LABELS}) > 0 || size(${MATCH_EXPRESSIONS}) > 0`,
    same('selector'),
    MESSAGES.selectorEmpty,
    { fieldPath: '.selector' },
  ),
  rule(
    `${MATCH_EXPRESSIONS}.all(e, size(e.?values.orValue([])) > 0 ? e.operator in ['In', 'NotIn'] : e.operator in ['Exists', 'DoesNotExist'])`,
    same('selector'),
    MESSAGES.selectorInvalid,
    { fieldPath: '.selector.matchExpressions' },
  ),
  rule(`size(${LABELS}) > 0`, same('template.metadata.labels'), MESSAGES.templateLabelsMissing, {
    fieldPath: '.template.metadata.labels',
    reason: 'FieldValueRequired',
  }),
  rule(
    `size(${LABELS}) == 0 || (${MATCH_LABELS}.all(k, k in ${LABELS} && ${LABELS}[k] == self.selector.matchLabels[k]) && ` +
      `${MATCH_EXPRESSIONS}.all(e, e.operator in ['Exists', 'In'] ` +
      `? e.key in ${LABELS} && (e.operator == 'Exists' || ${LABELS}[e.key] in e.?values.orValue([])) ` +
      `: !(e.key in ${LABELS}) || (e.operator != 'DoesNotExist' && !(${LABELS}[e.key] in e.?values.orValue([])))))`,
    same('selector', 'template.metadata.labels'),
    MESSAGES.selectorMismatch,
    { fieldPath: '.selector' },
  ),
];

/** On whatever has a reference to a class at `path`: it names one. */
export function classNamed(path: string): Rule {
  const member = (name: string): string => `self.${optional(path)}.?${name}.orValue('') != ''`;
  return rule(`(${member('kind')} && ${member('name')})`, same(path), MESSAGES.classIncomplete, {
    fieldPath: `.${path}`,
    reason: 'FieldValueRequired',
  });
}

const TYPE = "self.?strategy.?type.orValue('')";

/** On the spec of a MachineDeployment: the strategy has what its type needs. */
export const STRATEGY_RULES: Rule[] = [
  rule(`${TYPE} in ['RollingUpdate', 'Recreate', 'InPlaceUpdate']`, same('strategy.type'), MESSAGES.strategyType, {
    fieldPath: '.strategy.type',
  }),
  limitsPresent('RollingUpdate', 'rollingUpdate', MESSAGES.rollingUpdateIncomplete),
  limitsPresent('InPlaceUpdate', 'inPlaceUpdate', MESSAGES.inPlaceUpdateIncomplete),
  rule(
    `${TYPE} != 'InPlaceUpdate' || self.strategy.?inPlaceUpdate.?orchestrationType.orValue('') in ['Auto', 'Manual']`,
    same('strategy.type', 'strategy.inPlaceUpdate.orchestrationType'),
    MESSAGES.orchestrationType,
    { fieldPath: '.strategy.inPlaceUpdate.orchestrationType' },
  ),
];

function limitsPresent(type: string, member: string, message: string): Rule {
  const present = (limit: string): string => `self.strategy.?${member}.?${limit}.hasValue()`;
  return rule(
    `${TYPE} != '${type}' || (${present('maxSurge')} && ${present('maxUnavailable')})`,
    same('strategy.type', `strategy.${member}.maxSurge`, `strategy.${member}.maxUnavailable`),
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
