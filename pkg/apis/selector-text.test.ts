import { expect, test } from '@jest/globals';

import { labelMatcher } from './label-selector.ts';
import { parseSelector } from './selector-text.ts';

test.each([
  { text: 'shoot', matches: [{ shoot: '' }, { shoot: 'x' }], not: [{}, { other: 'x' }] },
  { text: '!shoot', matches: [{}], not: [{ shoot: '' }] },
  {
    text: 'gardener.cloud/role=shoot',
    matches: [{ 'gardener.cloud/role': 'shoot' }],
    not: [{ 'gardener.cloud/role': 'x' }],
  },
  { text: 'role == shoot', matches: [{ role: 'shoot' }], not: [{}] },
  { text: 'role!=seed', matches: [{}, { role: 'shoot' }], not: [{ role: 'seed' }] },
  { text: 'role in (a, b),stage', matches: [{ role: 'b', stage: '' }], not: [{ role: 'b' }, { role: 'c', stage: '' }] },
  { text: 'role notin (a,b)', matches: [{}, { role: 'c' }], not: [{ role: 'a' }] },
  { text: 'role=', matches: [{ role: '' }], not: [{ role: 'a' }, {}] },
])('label selector $text selects what kubectl selects with it', ({ text, matches, not }) => {
  const isSelected = labelMatcher(parseSelector(text));

  expect((matches as Record<string, string>[]).map(isSelected)).toEqual(matches.map(() => true));
  expect((not as Record<string, string>[]).map(isSelected)).toEqual(not.map(() => false));
});

test.each(['', ',', 'a,,b', '!a=b', 'a b', 'a in', 'a in (b', 'a=b=c', '/a', 'a=-', 'a in (b) c', 'ä=b'])(
  'label selector %j is refused, and what is wrong with it named',
  (text) => {
    expect(() => parseSelector(text)).toThrow(/^label selector: /);
  },
);
