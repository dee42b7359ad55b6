import { describe, expect, test } from '@jest/globals';

import { InvalidSelectorError, labelMatcher } from './label-selector.ts';
import type { LabelSelector, LabelSelectorRequirement } from './meta.ts';

describe('matching labels', () => {
  test.each<{ selector: LabelSelector | undefined; labels: Record<string, string> | undefined; want: boolean }>([
    { selector: undefined, labels: { a: '1' }, want: false },
    { selector: {}, labels: { a: '1' }, want: true },
    { selector: {}, labels: undefined, want: true },
    { selector: { matchLabels: { a: '1' } }, labels: { a: '1', b: '2' }, want: true },
    { selector: { matchLabels: { a: '1' } }, labels: { a: '2' }, want: false },
    { selector: { matchLabels: { a: '1' } }, labels: undefined, want: false },
    { selector: { matchLabels: { a: '1', b: '2' } }, labels: { a: '1' }, want: false },
    { selector: { matchLabels: { constructor: 'x' } }, labels: {}, want: false },
    {
      selector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] },
      labels: { a: '2' },
      want: true,
    },
    { selector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['1'] }] }, labels: {}, want: false },
    { selector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, labels: {}, want: true },
    {
      selector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] },
      labels: { a: '1' },
      want: false,
    },
    { selector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] }, labels: { a: '' }, want: true },
    { selector: { matchExpressions: [{ key: 'toString', operator: 'Exists' }] }, labels: {}, want: false },
    { selector: { matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, labels: { b: '' }, want: true },
    { selector: { matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, labels: { a: '' }, want: false },
    {
      selector: { matchLabels: { a: '1' }, matchExpressions: [{ key: 'b', operator: 'Exists' }] },
      labels: { a: '1' },
      want: false,
    },
  ])('$selector on $labels: $want', ({ selector, labels, want }) => {
    expect(labelMatcher(selector)(labels)).toBe(want);
  });

  test.each<LabelSelectorRequirement>([
    { key: 'a', operator: 'In' },
    { key: 'a', operator: 'NotIn', values: [] },
    { key: 'a', operator: 'Exists', values: ['1'] },
    { key: 'a', operator: 'DoesNotExist', values: ['1'] },
    { key: 'a', operator: 'Near' as 'In', values: ['1'] },
    { key: 'a', operator: 'Near' as 'In' },
  ])('refuses $key $operator $values as the API server does', (requirement) => {
    expect(() => labelMatcher({ matchExpressions: [requirement] })).toThrow(InvalidSelectorError);
  });

  test.each<{ what: string; selector: LabelSelector; says: string }>([
    {
      what: 'a key that no label has',
      selector: { matchLabels: { 'app ': 'a' } },
      says: '"app " is not a valid label key',
    },
    {
      what: 'a key in an expression that no label has',
      selector: { matchExpressions: [{ key: 'a b', operator: 'Exists' }] },
      says: '"a b" is not a valid label key',
    },
    {
      what: 'a value that no label has',
      selector: { matchLabels: { app: 'a b' } },
      says: '"a b" is not a valid label value',
    },
    {
      what: 'a value in an expression that no label has',
      selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['a', '-'] }] },
      says: '"-" is not a valid label value',
    },
    {
      what: 'an operator with a slip, whatever its values',
      selector: { matchExpressions: [{ key: 'app', operator: 'Inn' as 'In', values: ['a'] }] },
      says: 'unknown operator Inn at key app; must be one of In, NotIn, Exists, DoesNotExist',
    },
  ])('refuses $what, which would select nothing', ({ selector, says }) => {
    expect(() => labelMatcher(selector)).toThrow(says);
  });
});
