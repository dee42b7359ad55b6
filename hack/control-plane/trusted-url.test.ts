import { expect, test } from '@jest/globals';

import { isTrustedURL } from './trusted-url.ts';

test.each([
  { url: 'https://files.example/x.tar.gz', is: true },
  { url: 'http://localhost:8080/x.tar.gz', is: true },
  { url: 'http://127.0.0.1/x.tar.gz', is: true },
  { url: 'http://127.1:80/x.tar.gz', is: true },
  { url: 'http://127.9.8.7/x.tar.gz', is: true },
  { url: 'http://[::1]:8080/x.tar.gz', is: true },
  { url: 'http://127.attacker.example/x.tar.gz', is: false },
  { url: 'http://127.0.0.1.attacker.example/x.tar.gz', is: false },
  { url: 'http://localhost.attacker.example/x.tar.gz', is: false },
  { url: 'http://10.0.0.1/x.tar.gz', is: false },
  { url: 'http://192.168.0.1/x.tar.gz', is: false },
  { url: 'http://[::2]/x.tar.gz', is: false },
  { url: 'http://files.example/x.tar.gz', is: false },
  { url: 'ftp://127.0.0.1/x.tar.gz', is: false },
])('checksums of $url are believed: $is', ({ url, is }) => {
  expect(isTrustedURL(new URL(url))).toBe(is);
});
