import { shortText } from '../../../pkg/apis/short-text.ts';

/** The same value, each text in it as short as anything from outside that is kept: the screen is drawn again at every change. */
export function shortTexts<Value>(value: Value): Value {
  return shortened(value) as Value;
}

function shortened(value: unknown): unknown {
  if (typeof value === 'string') return shortText(value);
  if (Array.isArray(value)) return value.map(shortened);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shortened(member)]));
}
