import { expect, test } from '@jest/globals';

import { ipAndPort, socketPath } from './command.ts';

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

test.each([
  { text: '0.0.0.0:9090', want: { address: '0.0.0.0', port: 9090 } },
  { text: '[::1]:0', want: { address: '::1', port: 0 } },
])('metrics are served at $text', ({ text, want }) => {
  expect(ipAndPort(text)).toEqual(want);
});

test.each(['9090', 'localhost:9090', '1.2.3:9', '[::1]', '127.0.0.1:65536', ''])('and not at %j', (text) => {
  expect(() => ipAndPort(text)).toThrow('Expected IP:PORT, such as 0.0.0.0:9090.');
});
