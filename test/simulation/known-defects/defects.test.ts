import path from 'node:path';

import { expect, test } from '@jest/globals';

import { Pieces } from '../../../hack/mutations/mutation.ts';
import { readSources } from '../../../hack/mutations/sources.ts';
import { KNOWN_DEFECTS } from './defects.ts';

test('each known defect can be put back into the source, and has a name of its own', () => {
  const pieces = new Pieces(readSources(path.join(import.meta.dirname, '../../..')));

  expect(() => KNOWN_DEFECTS.map(({ change }) => pieces.locate(change))).not.toThrow();
  expect(new Set(KNOWN_DEFECTS.map(({ name }) => name)).size).toBe(KNOWN_DEFECTS.length);
});
