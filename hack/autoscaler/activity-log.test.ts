import { expect, test } from '@jest/globals';

import { ActivityLog } from './activity-log.ts';

test('two deeds that read alike are told twice, a state that lasts once', () => {
  const lines: string[] = [];
  const told = new ActivityLog((line) => lines.push(line));

  told.did('grows by 1');
  told.did('grows by 1');
  told.saw('full');
  told.saw('full');
  told.did('shrinks');
  told.saw('full');

  expect(lines).toEqual(['grows by 1', 'grows by 1', 'full', 'shrinks', 'full']);
});
