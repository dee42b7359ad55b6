import { expect, test } from '@jest/globals';

import {
  DELETION_POLICY_ANNOTATION,
  REVISION_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import { machineDeployment, machineSet } from '../../../test/builders.ts';
import { rollbackChange, rollbackTarget } from './rollback.ts';

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

test('a rollback brings no deletion policy and no update order back, and takes none away', () => {
  const target = machineSet((s) => {
    s.metadata.annotations[DELETION_POLICY_ANNOTATION] = 'forced';
    s.metadata.annotations['example.com/note'] = 'old';
  });
  const deployment = machineDeployment((d) => {
    d.metadata.annotations = { [UPDATE_ORDER_ANNOTATION]: 'pool/1', 'example.com/other': 'x' };
  });

  const { annotations } = rollbackChange(deployment, target).metadata ?? {};

  expect(annotations).toEqual({ 'example.com/note': 'old', 'example.com/other': null });
});
