import { expect, test } from '@jest/globals';

import { REVISION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { machineSet } from '../../../test/builders.ts';
import { rollbackTarget } from './rollback.ts';

const revision = (text: string): ReturnType<typeof machineSet> =>
  machineSet((s) => {
    s.metadata.name = `s-${text}`;
    s.metadata.annotations[REVISION_ANNOTATION] = text;
  });

test.each([
  { of: ['3', '10', '9'], to: 0, target: 's-9' },
  { of: ['3', '10', '9'], to: 3, target: 's-3' },
  { of: ['3', '10', '9'], to: 10, target: 's-10' },
  { of: ['3', '10', '9'], to: 4, target: undefined },
  { of: ['3'], to: 0, target: undefined },
  { of: ['3', 'x', ''], to: 0, target: undefined },
])('of the revisions $of a rollback to $to finds $target', ({ of, to, target }) => {
  expect(rollbackTarget(of.map(revision), to)?.metadata.name).toBe(target);
});
