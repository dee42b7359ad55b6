import { expect, test } from '@jest/globals';

import { machine } from '../../test/builders.ts';
import { nodeOfMachine } from '../fleet/tree.ts';
import { rememberingNodes } from './known-machines.ts';

const NOW_MS = Date.parse('2026-01-01T00:10:00Z');

test('a Machine is explained again when it is another object, its owner says something else, or its preservation ends', () => {
  const kept = machine((one) => {
    one.status.currentStatus = { phase: 'Failed', preserveExpiryTime: '2026-01-01T00:20:00Z' };
  });
  const nodeOf = rememberingNodes();
  const first = nodeOf(kept, NOW_MS, undefined);

  expect(first).toEqual(nodeOfMachine(kept, NOW_MS, undefined));
  expect(nodeOf(kept, NOW_MS + 1, undefined)).toBe(first);
  expect(nodeOf(structuredClone(kept), NOW_MS, undefined)).not.toBe(first);
  expect(nodeOf(kept, NOW_MS, 'No answer.')).toEqual(nodeOfMachine(kept, NOW_MS, 'No answer.'));
  const later = Date.parse('2026-01-01T00:20:00Z');
  expect(nodeOf(kept, later, 'No answer.')).toEqual(nodeOfMachine(kept, later, 'No answer.'));
  expect(nodeOf(kept, later, 'No answer.')).not.toEqual(nodeOf(kept, NOW_MS, 'No answer.'));
});
