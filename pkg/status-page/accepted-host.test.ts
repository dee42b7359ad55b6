import { expect, test } from '@jest/globals';
import { isAcceptedHost, isOwnRequest } from './status-page.ts';

test.each([
  { host: 'localhost:10258', is: true },
  { host: 'LOCALHOST', is: true },
  { host: 'a.localhost:1', is: true },
  { host: '127.0.0.1:10258', is: true },
  { host: '10.1.2.3', is: true },
  { host: '[::1]:10258', is: true },
  { host: '[fd00::1]', is: true },
  { host: 'machinist:10258', is: true },
  { host: 'machinist.machinist.svc', is: true },
  { host: 'machinist.machinist.svc.cluster.local:10258', is: true },
  { host: 'evil.example:10258', is: false },
  { host: 'localhost.evil.example', is: false },
  { host: 'a.svc.evil.example', is: false },
  { host: 'evilsvc.example', is: false },
  { host: '127.0.0.1.evil.example', is: false },
  { host: '[evil.example]', is: false },
  { host: '', is: false },
  { host: ':10258', is: false },
  { host: 'a:b:c', is: false },
  { host: undefined, is: false },
])('a page opened as $host is served: $is', ({ host, is }) => {
  expect(isAcceptedHost(host)).toBe(is);
});

test.each([
  { site: undefined, is: true },
  { site: 'same-origin', is: true },
  { site: 'none', is: true },
  { site: 'same-site', is: false },
  { site: 'cross-site', is: false },
])('events asked for from $site are served: $is', ({ site, is }) => {
  expect(isOwnRequest(site)).toBe(is);
});
