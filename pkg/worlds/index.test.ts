import { expect, test } from '@jest/globals';

import { APIS } from '../../oxlint.config.ts';
import { LISTED_WORLDS } from './index.ts';

test('each folder of an API is listed once, by its name', () => {
  expect(LISTED_WORLDS.map(({ name }) => name).toSorted()).toEqual(APIS.toSorted());
});

test.each(LISTED_WORLDS)('what $name loads has the same name', async ({ name, load }) => {
  expect((await load()).name).toBe(name);
});

test.each(LISTED_WORLDS.flatMap(({ described }) => described))(
  'what describes a $resource.kind is loaded for it',
  async ({ resource, load }) => {
    expect((await load()).resource).toBe(resource);
  },
);
