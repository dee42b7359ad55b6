import { at, isMembers } from './json.ts';

/** Whether a metav1.LabelSelector selects labels. An empty one selects all, an absent one none. */
export function labelsSelected(selector: unknown, labels: Readonly<Record<string, string>>): boolean {
  if (!isMembers(selector)) return false;
  const wanted = isMembers(selector['matchLabels']) ? selector['matchLabels'] : {};
  if (!Object.entries(wanted).every(([key, value]) => labels[key] === value)) return false;
  const expressions = Array.isArray(selector['matchExpressions']) ? (selector['matchExpressions'] as unknown[]) : [];
  return expressions.every((one) => {
    const value = labels[String(at(one, ['key']))];
    const values = at(one, ['values']);
    const isIn = value !== undefined && Array.isArray(values) && values.includes(value);
    switch (at(one, ['operator'])) {
      case 'In':
        return isIn;
      case 'NotIn':
        return !isIn;
      case 'Exists':
        return value !== undefined;
      default:
        return value === undefined;
    }
  });
}
