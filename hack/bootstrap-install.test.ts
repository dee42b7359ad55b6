import { createRequire } from 'node:module';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '..');

interface Bootstrap {
  readonly placeOf: (command: string, env: { readonly INIT_CWD?: string }, cwd: string) => string;
  readonly packagesOf: (lockfile: string) => string;
}

const { placeOf, packagesOf } = createRequire(import.meta.url)('./bootstrap-install.cjs') as Bootstrap; // by its source

test.each([
  { command: 'machinist', env: { INIT_CWD: '/home/me' }, place: '/home/me', what: 'where npm was started' },
  { command: 'machinist', env: {}, place: '/here', what: 'where it was started, without npm' },
  { command: 'test', env: { INIT_CWD: '/home/me' }, place: ROOT, what: 'in the checkout' },
])('$command runs $what', ({ command, env, place }) => {
  expect(placeOf(command, env, '/here')).toBe(place);
});

test('packages are installed again when the lockfile has others, and not for another version of this project', () => {
  const lockfile = (version: string, of: string): string =>
    JSON.stringify({ version, packages: { '': { name: 'machinist', version }, 'node_modules/a': { version: of } } });

  expect(packagesOf(lockfile('2.0.0', '1.0.0'))).toBe(packagesOf(lockfile('1.0.0', '1.0.0')));
  expect(packagesOf(lockfile('1.0.0', '1.0.1'))).not.toBe(packagesOf(lockfile('1.0.0', '1.0.0')));
});
