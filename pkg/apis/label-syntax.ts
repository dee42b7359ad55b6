const LABEL_KEY = /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

export function isLabelKey(text: unknown): text is string {
  return typeof text === 'string' && LABEL_KEY.test(text);
}

export function isLabelValue(text: unknown): text is string {
  return typeof text === 'string' && LABEL_VALUE.test(text);
}
