import { readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { openStackDriverCommand } from './openstack-driver.ts';

const PAGE = path.resolve(import.meta.dirname, '../../docs/operations/openstack.md');

test('the page about OpenStack names every flag of the driver, and no other', () => {
  const rows = [...readFileSync(PAGE, 'utf8').matchAll(/^\| `--([a-z-]+)` /gm)].map(([, name]) => name);

  const { options } = openStackDriverCommand();
  expect(new Set(rows)).toEqual(new Set(options.map(({ long }) => long?.slice(2))));
});
