import { isLabelKey, isLabelValue } from './label-syntax.ts';
import type { LabelSelector, LabelSelectorRequirement } from './meta.ts';

export type LabelMatcher = (labels: Readonly<Record<string, string>> | undefined) => boolean;

export class InvalidSelectorError extends Error {
  override readonly name = 'InvalidSelectorError';
}

/**
 * The matcher of a label selector, with the semantics of Kubernetes: all parts must hold; an empty selector matches
 * everything, an absent one nothing; NotIn also holds for an absent label. Throws InvalidSelectorError for an operator
 * that does not exist, values where they are needed or forbidden, and keys and values that no label has: what was meant is not known then.
 */
export function labelMatcher(selector: LabelSelector | undefined): LabelMatcher {
  if (selector === undefined) return () => false;
  const pairs = Object.entries(selector.matchLabels ?? {});
  for (const [key, value] of pairs) checkSyntax(key, [value]);
  const expressions = (selector.matchExpressions ?? []).map(expressionMatcher);
  return (labels = {}) =>
    pairs.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
    expressions.every((holds) => holds(labels));
}

function checkSyntax(key: unknown, values: readonly unknown[]): void {
  if (!isLabelKey(key))
    throw new InvalidSelectorError(`label selector: ${JSON.stringify(key)} is not a valid label key`);
  const wrong = values.find((value) => !isLabelValue(value));
  if (wrong === undefined) return;
  throw new InvalidSelectorError(`label selector: ${JSON.stringify(wrong)} is not a valid label value, at key ${key}`);
}

function expressionMatcher({ key, operator, values = [] }: LabelSelectorRequirement): LabelMatcher {
  checkSyntax(key, values);
  const has = (labels: Readonly<Record<string, string>> = {}): boolean => Object.hasOwn(labels, key);
  const isAmong: LabelMatcher = (labels) => has(labels) && values.includes(labels?.[key] ?? '');
  const matchers: Readonly<
    Record<LabelSelectorRequirement['operator'], { needsValues: boolean; holds: LabelMatcher }>
  > = {
    In: { needsValues: true, holds: isAmong },
    NotIn: { needsValues: true, holds: (labels) => !isAmong(labels) },
    Exists: { needsValues: false, holds: has },
    DoesNotExist: { needsValues: false, holds: (labels) => !has(labels) },
  };
  if (!Object.hasOwn(matchers, operator)) {
    const known = Object.keys(matchers).join(', ');
    throw new InvalidSelectorError(
      `label selector: unknown operator ${operator} at key ${key}; must be one of ${known}`,
    );
  }
  const { needsValues, holds } = matchers[operator];
  if (needsValues === values.length > 0) return holds;
  const wants = needsValues ? 'needs values' : 'does not take values';
  throw new InvalidSelectorError(`label selector: operator ${operator} at key ${key} ${wants}`);
}
