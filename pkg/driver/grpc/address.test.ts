import { describe, expect, test } from '@jest/globals';

import { parseDriverAddress, requireProtected } from './address.ts';

describe('parseDriverAddress', () => {
  test('takes a socket by its absolute path', () => {
    expect(parseDriverAddress('unix:///run/driver.sock')).toMatchObject({
      target: 'unix:///run/driver.sock',
      path: '/run/driver.sock',
      tls: undefined,
    });
  });

  test.each(['dns:///127.0.0.1:8080', 'dns:///localhost:8080', 'dns:///[::1]:8080'])('takes %s without TLS', (text) => {
    expect(parseDriverAddress(text)).toMatchObject({ target: text, port: 8080, tls: undefined });
  });

  test('takes a remote driver with the three files of mutual TLS', () => {
    const address = parseDriverAddress('dns:///driver.ns.svc:443?ca=/tls/ca.crt&cert=/tls/tls.crt&key=/tls/tls.key');

    expect(address).toEqual({
      target: 'dns:///driver.ns.svc:443',
      path: undefined,
      host: 'driver.ns.svc',
      port: 443,
      tls: { ca: '/tls/ca.crt', cert: '/tls/tls.crt', key: '/tls/tls.key' },
      insecure: false,
    });
  });

  test.each([
    { text: 'unix:/run/driver.sock', why: 'unix:///absolute/path' },
    { text: 'unix://run/driver.sock', why: 'unix:///absolute/path' },
    { text: 'localhost:8080', why: 'must start with' },
    { text: 'dns:///driver', why: 'dns:///host:port' },
    { text: 'dns:///driver:99999', why: 'dns:///host:port' },
    { text: 'dns:///driver:443', why: 'carry credentials' },
    { text: 'dns:///driver:443?ca=/a&cert=/b', why: 'key is missing' },
    { text: 'dns:///driver:443?ca=/a&cert=/b&key=/c&insecure=true', why: 'unknown parameter insecure' },
    { text: 'dns:///driver:443?insecure=true', why: 'carry credentials' },
    { text: 'dns:///127.0.0.1:443?insecure=1', why: 'unknown parameter insecure' },
  ])('refuses $text', ({ text, why }) => {
    expect(() => parseDriverAddress(text)).toThrow(why);
  });

  test.each([
    'unix:///run/driver.sock',
    'dns:///127.0.0.1:443?ca=/a&cert=/b&key=/c',
    'dns:///127.0.0.1:443?insecure=true',
  ])('lets a driver serve on %s', (text) => {
    expect(() => requireProtected(parseDriverAddress(text))).not.toThrow();
  });

  test('lets no driver serve every user of the host unless the address says so', () => {
    expect(() => requireProtected(parseDriverAddress('dns:///127.0.0.1:443'))).toThrow(
      /any user of this host could call the driver.*insecure=true/,
    );
  });
});
