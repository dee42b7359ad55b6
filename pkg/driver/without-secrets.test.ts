import { describe, expect, test } from '@jest/globals';

import { repeatsSecrets, withoutSecrets } from './without-secrets.ts';

const TOKEN = 'abcdef.0123456789abcdef';
const KEY = '-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END KEY-----\n';
const secretData = {
  userData: Buffer.from(`#cloud-config\ntoken: "${TOKEN}"\nserver: https://api.example.org:443/\n`),
  password: Buffer.from('s3cr3t/p&ss'),
  passphrase: Buffer.from('two "w>rds?" (!)'),
  region: Buffer.from('eu-central-1'),
  namespace: Buffer.from('some-namespace'),
  insecure: Buffer.from('true'),
  key: Buffer.from(KEY),
  size: Buffer.from('m5.huge'),
};

describe('a text of a provider', () => {
  test.each([
    { what: 'a region and a namespace', text: 'eu-central-1, some-namespace', want: 'eu-central-1, some-namespace' },
    { what: 'a password', text: 'login with s3cr3t/p&ss failed', want: 'login with [redacted] failed' },
    { what: 'a password in base64', text: `got ${btoa('s3cr3t/p&ss')}`, want: 'got [redacted]' },
    { what: 'a password in a URL', text: 'GET /?p=s3cr3t%2Fp%26ss', want: 'GET /?p=[redacted]' },
    {
      what: 'a password in base64 without padding',
      text: `got ${btoa('s3cr3t/p&ss').replace(/=+$/, '')}.`,
      want: 'got [redacted].',
    },
    {
      what: 'a password in base64 for URLs',
      text: `got ${Buffer.from('two "w>rds?" (!)').toString('base64url')}.`,
      want: 'got [redacted].',
    },
    { what: 'a password in JSON', text: JSON.stringify({ p: 'two "w>rds?" (!)' }), want: '{"p":"[redacted]"}' },
    {
      what: 'a password in a query of another language',
      text: 'GET /?p=two%20%22w%3Erds%3F%22%20%28%21%29',
      want: 'GET /?p=[redacted]',
    },
    { what: 'a password in a form', text: 'p=two+%22w%3Erds%3F%22+%28%21%29&q', want: 'p=[redacted]&q' },
    {
      what: 'a password as a Buffer in JSON',
      text: JSON.stringify({ p: Buffer.from('s3cr3t/p&ss') }),
      want: '{"p":{"type":"Buffer","data":[[redacted]]}}',
    },
    {
      what: 'a password as a list of numbers',
      text: JSON.stringify({ p: [...Buffer.from('s3cr3t/p&ss')] }, undefined, 2),
      want: '{\n  "p": [\n    [redacted]\n  ]\n}',
    },
    {
      what: 'a password as an Uint8Array in JSON',
      text: JSON.stringify({ p: new Uint8Array(Buffer.from('s3cr3t/p&ss')) }),
      want: '{"p":{[redacted]}}',
    },
    {
      what: 'a token in user data as a list of numbers',
      text: JSON.stringify([...secretData.userData]),
      want: '[[redacted]]',
    },
    {
      what: 'a Secret in base64',
      text: `got ${btoa(JSON.stringify({ user: 'me', password: 's3cr3t/p&ss' }))}.`,
      want: 'got [redacted].',
    },
    { what: 'a password in hex', text: `got ${Buffer.from('s3cr3t/p&ss').toString('hex')}`, want: 'got [redacted]' },
    { what: 'a token in user data', text: `bad token '${TOKEN}'`, want: "bad token '[redacted]'" },
    { what: 'a key', text: `bad key ${KEY.trim()}`, want: 'bad key [redacted]' },
    { what: 'a line of a key', text: 'near MIIEvQIBADANBgkqhkiG9w0BAQEFAASC', want: 'near [redacted]' },
    {
      what: 'a key in JSON',
      text: JSON.stringify({ KEY }),
      want: String.raw`{"KEY":"[redacted]\n"}`,
    },
    { what: 'nothing of it', text: 'no capacity in eu-central-1: true', want: 'no capacity in eu-central-1: true' },
    { what: 'nothing of it but numbers', text: 'ports 1,2,3,4,5,6,7,8,9', want: 'ports 1,2,3,4,5,6,7,8,9' },
    { what: 'a value of seven characters', text: 'no m5.huge left', want: 'no m5.huge left' },
    {
      what: 'an address',
      text: 'GET https://api.example.org:443/ failed',
      want: 'GET https://api.example.org:443/ failed',
    },
  ])('that repeats $what does not show it', ({ text, want }) => {
    expect(withoutSecrets(text, secretData)).toBe(want);
  });

  test('that is far too long repeats a Secret at its end, too', () => {
    expect(repeatsSecrets(`${'x'.repeat(100_000)} ${TOKEN}`, secretData)).toBe(true);
    expect(repeatsSecrets('x'.repeat(100_000), secretData)).toBe(false);
  });

  test('that is far too long is searched no longer than is kept of it', () => {
    const text = withoutSecrets(`${'x'.repeat(1_000_000)} ${TOKEN}`, secretData);

    expect(text.length).toBeLessThan(20_000);
    expect(text).not.toContain(TOKEN);
    expect(text).toMatch(/\[redacted\]$/);
  });
});
