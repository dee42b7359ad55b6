import { boundedLabels } from './machine.ts';
import { listOf, object, type Schema, text } from './schema.ts';

/** Limit that only bounds the cost of the rules: a selector has a handful of expressions. */
const MAX_EXPRESSIONS = 256;

/** A label selector. */
export function selector(description: string): Schema {
  const expression = object(
    'A requirement for a label.',
    {
      key: text('Key of the label.'),
      operator: text('In, NotIn, Exists or DoesNotExist.'),
      values: listOf(
        'Values for In and NotIn; must be empty for the other operators.',
        { type: 'string' },
        { maxItems: MAX_EXPRESSIONS, 'x-kubernetes-list-type': 'atomic' },
      ),
    },
    { required: ['key', 'operator'] },
  );
  return object(
    description,
    {
      matchExpressions: listOf('Requirements for labels; all must be met.', expression, {
        maxItems: MAX_EXPRESSIONS,
        'x-kubernetes-list-type': 'atomic',
      }),
      matchLabels: boundedLabels('Labels that must exist with exactly these values.'),
    },
    { 'x-kubernetes-map-type': 'atomic' },
  );
}
