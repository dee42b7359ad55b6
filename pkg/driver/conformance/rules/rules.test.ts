import { readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { RULES } from './index.ts';

const CONTRACT = path.resolve(import.meta.dirname, '../../../../proto/machine/driver/v1/driver.proto');

/** The comments of the contract as one text. */
const words = readFileSync(CONTRACT, 'utf8')
  .replaceAll(/^ *\/\/ ?/gm, '')
  .replaceAll(/\s+/g, ' ');

test('each rule has a name of its own', () => {
  const names = RULES.map(({ name }) => name);

  expect(new Set(names).size).toBe(names.length);
});

test.each(RULES)('the contract says what rule $name is about, in a whole sentence', ({ sentence }) => {
  expect(sentence).toMatch(/^[A-Z].*\.$/);
  // Names of methods and fields stand before the first word of some comments.
  const before = words[words.indexOf(` ${sentence} `) - 1];
  expect(before).toMatch(/[.:;{}]/);
});
