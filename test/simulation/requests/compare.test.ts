import { expect, test } from '@jest/globals';

import { Asked } from './compare.ts';
import { get } from './row.ts';

/** What is compared of a list of one object, and of that object afterwards. */
async function seen(listed: string, answered: object): Promise<readonly unknown[]> {
  const object = { metadata: { name: 'a', resourceVersion: '5' } };
  const answers = [{ metadata: { resourceVersion: listed }, ...answered }, object];
  const asked = new Asked({ namespace: 'ns', prefix: '' }, async () => ({ code: 200, body: answers.shift() }));
  return [await asked.ask(get('all', 'machines')), await asked.ask(get('one', 'machines/a'))];
}

test.each([
  { what: 'list', answered: { items: [{ metadata: { name: 'a', resourceVersion: '5' } }] } },
  { what: 'table', answered: { kind: 'Table', columnDefinitions: [], rows: [] } },
])('that others have written since changes nothing of what is compared after a $what', async ({ answered }) => {
  expect(await seen('9', answered)).toEqual(await seen('5', answered));
});
