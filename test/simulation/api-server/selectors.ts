import { badRequest } from './failure.ts';
import { at } from './json.ts';
import type { StoredObject } from './stored-object.ts';

/** Whether an object is meant. */
export type Selector = (object: StoredObject) => boolean;

const SET = /^(!?)([^\s!=,()]+)(?:\s+(in|notin)\s+\(([^)]*)\)|\s*(==?|!=)\s*([^,=]*))?$/;

/** What a label selector of a query selects. Throws a Failure. */
export function labelSelector(text: string | null): Selector {
  const terms = (text ?? '') === '' ? [] : (text ?? '').split(/,(?![^(]*\))/);
  const tests = terms.map((term) => {
    const parts = SET.exec(term.trim());
    if (parts === null) throw badRequest(`unable to parse requirement: ${term}`);
    const [, not, , set, values = '', operator, value = ''] = parts;
    const wanted = values.split(',').map((one) => one.trim());
    return (label: string | undefined): boolean => {
      if (set === 'in') return label !== undefined && wanted.includes(label);
      if (set === 'notin') return label === undefined || !wanted.includes(label);
      if (operator === undefined) return (label === undefined) === (not === '!');
      return (label === value.trim()) === (operator !== '!=');
    };
  });
  const keys = terms.map((term) => SET.exec(term.trim())?.[2] ?? '');
  return ({ metadata: { labels = {} } }) => tests.every((test, i) => test(labels[keys[i] ?? '']));
}

/** What a field selector of a query selects, of the fields that the kind lets be selected by. Throws a Failure. */
export function fieldSelector(text: string | null, fields: readonly string[]): Selector {
  const terms = (text ?? '').split(',').filter((term) => term !== '');
  const tests = terms.map((term): Selector => {
    const [, field = '', operator = '', value = ''] = /^([^!=]+)(==?|!=)(.*)$/.exec(term) ?? [];
    if (operator === '') throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
    if (!fields.includes(field)) throw badRequest(`field label not supported: ${field}`);
    const path = field.split('.');
    return (object) => (textOf(at(object, path)) === value) === (operator !== '!=');
  });
  return (object) => tests.every((test) => test(object));
}

/** The name that a field selector asks for, if it names one object. */
export function nameSelected(text: string | null): string | undefined {
  return /(?:^|,)metadata\.name==?([^,]+)/.exec(text ?? '')?.[1];
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}
