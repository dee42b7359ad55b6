import { expect, test } from '@jest/globals';

import { distrustOf, HttpClient } from './http.ts';
import { DEFAULT_OPENSTACK_SETTINGS, proxiesIn } from './settings.ts';

test.each([
  { code: 'SELF_SIGNED_CERT_IN_CHAIN', says: /^caCert: the certificate of cloud:5000 is not trusted; put/ },
  { code: 'DEPTH_ZERO_SELF_SIGNED_CERT', says: /^caCert: .* is not trusted/ },
  { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', says: /^caCert: .* is not trusted/ },
  { code: 'ERR_TLS_CERT_ALTNAME_INVALID', says: /^authURL: the certificate of cloud:5000 is for other names/ },
  { code: 'CERT_HAS_EXPIRED', says: /^authURL: the certificate of cloud:5000 is not valid at this time/ },
  { code: 'ECONNREFUSED', says: /^nothing$/ },
  { code: '', says: /^nothing$/ },
])('what is wrong with a certificate: $code', ({ code, says }) => {
  expect(distrustOf(code, 'cloud:5000') ?? 'nothing').toMatch(says);
});

test('an authority that is no certificate is refused, and not taken for none', () => {
  const tls = { ca: 'nonsense', cert: undefined, key: undefined, isInsecure: false };

  expect(() => new HttpClient(tls, DEFAULT_OPENSTACK_SETTINGS.proxies)).toThrow(/secret: caCert cannot be read as PEM/);
});

test.each([
  { env: {}, want: { http: '', https: '', not: '' } },
  {
    env: { HTTP_PROXY: 'http://a', HTTPS_PROXY: ' http://b ', NO_PROXY: '.c' },
    want: { http: 'http://a', https: 'http://b', not: '.c' },
  },
  { env: { HTTPS_PROXY: 'http://b', https_proxy: 'http://d' }, want: { http: '', https: 'http://d', not: '' } },
])('an environment of $env names the proxies $want', ({ env, want }) => {
  expect(proxiesIn(env)).toEqual(want);
});
