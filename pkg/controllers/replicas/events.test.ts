import { expect, test } from '@jest/globals';

import { machineSet } from '../../../test/builders.ts';
import { reachedCreationLimit } from './events.ts';

test('that too much was created is told without numbers, so that equal Events are counted as one', () => {
  const { reason, message } = reachedCreationLimit(machineSet());

  expect(reason).toBe('CreationLimitReached');
  expect(message).not.toMatch(/\d/);
  expect(message).toContain('safety.machine.sapcloud.io/unfreeze');
});
