import { labelMatcher, InvalidSelectorError } from './label-selector.ts';
import type { LabelSelector, LabelSelectorRequirement } from './meta.ts';

/** `key`, `!key`, `key=value`, `key!=value`, `key in (a,b)` or `key notin (a,b)`. */
const REQUIREMENT = /^(?:(!)\s*)?([^\s=!()]+)\s*(?:(==?|!=)\s*(\S*)|(in|notin)\s*\(([^()]*)\))?$/;

/**
 * A label selector as kubectl takes it, parts separated by commas. Throws InvalidSelectorError, also for an empty one, which would
 * match everything.
 */
export function parseSelector(text: string): LabelSelector {
  const matchExpressions = text.split(/,(?![^(]*\))/).map((part) => requirementOf(part.trim()));
  const selector = { matchExpressions };
  labelMatcher(selector);
  return selector;
}

function requirementOf(part: string): LabelSelectorRequirement {
  const [whole, not, key = '', sign, value = '', word, list = ''] = REQUIREMENT.exec(part) ?? [];
  if (whole === undefined || (not !== undefined && (sign ?? word) !== undefined)) {
    throw new InvalidSelectorError(
      `label selector: ${JSON.stringify(part)} is not valid: expected KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (A,B) or KEY notin (A,B)`,
    );
  }
  if (sign !== undefined) return { key, operator: sign === '!=' ? 'NotIn' : 'In', values: [value] };
  const values = list.split(',').map((one) => one.trim());
  if (word !== undefined) return { key, operator: word === 'in' ? 'In' : 'NotIn', values };
  return { key, operator: not === undefined ? 'Exists' : 'DoesNotExist' };
}
