import { createRequire } from 'node:module';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '..');

interface Bootstrap {
  readonly placeOf: (command: string, env: { readonly INIT_CWD?: string }, cwd: string) => string;
}

const { placeOf } = createRequire(import.meta.url)('./bootstrap-install.cjs') as Bootstrap; // by its source

test.each([
  { command: 'machinist', env: { INIT_CWD: '/home/me' }, place: '/home/me', what: 'where npm was started' },
  { command: 'machinist', env: {}, place: '/here', what: 'where it was started, without npm' },
  { command: 'test', env: { INIT_CWD: '/home/me' }, place: ROOT, what: 'in the checkout' },
])('$command runs $what', ({ command, env, place }) => {
  expect(placeOf(command, env, '/here')).toBe(place);
});
