import type { LabelSelector, LabelSelectorRequirement } from './meta.ts';

/** Says whether labels are selected. */
export type LabelMatcher = (labels: Readonly<Record<string, string>> | undefined) => boolean;

/** A label selector that the API server would refuse. */
export class InvalidSelectorError extends Error {
  override readonly name = 'InvalidSelectorError';
}

/**
 * The matcher of a label selector, with the semantics of Kubernetes: all parts must hold; an empty selector matches
 * everything, an absent one nothing; NotIn also holds for an absent label. Throws InvalidSelectorError for an operator
 * that does not exist, or values where they are needed or forbidden.
 */
export function labelMatcher(selector: LabelSelector | undefined): LabelMatcher {
  if (selector === undefined) return () => false;
  const pairs = Object.entries(selector.matchLabels ?? {});
  const expressions = (selector.matchExpressions ?? []).map(expressionMatcher);
  return (labels = {}) =>
    pairs.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
    expressions.every((holds) => holds(labels));
}

function expressionMatcher({ key, operator, values = [] }: LabelSelectorRequirement): LabelMatcher {
  const needsValues = operator === 'In' || operator === 'NotIn';
  if (needsValues !== values.length > 0) {
    throw new InvalidSelectorError(`label selector: ${key} ${operator} with ${values.length} values`);
  }
  const has = (labels: Readonly<Record<string, string>> = {}): boolean => Object.hasOwn(labels, key);
  const isAmong: LabelMatcher = (labels) => has(labels) && values.includes(labels?.[key] ?? '');
  switch (operator) {
    case 'In':
      return isAmong;
    case 'NotIn':
      return (labels) => !isAmong(labels);
    case 'Exists':
      return has;
    case 'DoesNotExist':
      return (labels) => !has(labels);
    default:
      throw new InvalidSelectorError(`label selector: unknown operator ${String(operator)}`);
  }
}
