import { expect, test } from '@jest/globals';

import { socketPath } from './command.ts';

test('what is served without authentication is served on a socket', () => {
  expect(socketPath('unix:///run/control.sock')).toBe('/run/control.sock');
});

test.each([
  '8080',
  '0',
  '127.0.0.1:8080',
  'dns:///127.0.0.1:8080?insecure=true',
  'unix:///',
  'unix://control.sock',
  '',
])('and never at %j', (address) => {
  expect(() => socketPath(address)).toThrow('Expected unix:///path.');
});
