import type { KubeObject } from '../../apis/meta.ts';
import { shortText } from '../../apis/short-text.ts';

export interface AnnotationRule {
  readonly key: string;
  readonly isUnderstood: (value: string) => boolean;
  /** What would be right, after "must be". */
  readonly allowed: string;
  /** What counts until it is corrected. */
  readonly until: string;
}

/** So much of a value is repeated. */
const LONGEST_VALUE = 128;

/** What is wrong with an annotation of an object, what would be right, and what counts until then; undefined when nothing is. */
export function problemWith(
  { key, isUnderstood, allowed, until }: AnnotationRule,
  { metadata }: Pick<KubeObject, 'metadata'>,
  where: string,
): string | undefined {
  const value = metadata.annotations?.[key];
  if (value === undefined || isUnderstood(value)) return undefined;
  const shown = JSON.stringify(shortText(value, LONGEST_VALUE));
  return `Annotation ${key} of ${where} is ${shown}, but must be ${allowed}: ${until}.`;
}
