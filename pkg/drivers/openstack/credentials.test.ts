import { expect, test } from '@jest/globals';

import { parseCredentials } from './credentials.ts';

const PASSWORD = {
  authURL: 'https://keystone.example:5000/v3',
  domainName: 'default',
  tenantName: 'project',
  username: 'user',
  password: 'secret',
};
const APPLICATION = {
  authURL: 'https://keystone.example',
  applicationCredentialID: 'a-1',
  applicationCredentialSecret: 's',
};

function secret(texts: Readonly<Record<string, string | undefined>>): Record<string, Uint8Array> {
  const encoder = new TextEncoder();
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, encoder.encode(text ?? '')]));
}

test.each([
  {
    what: 'user and project by name',
    texts: PASSWORD,
    auth: {
      identity: {
        methods: ['password'],
        password: { user: { name: 'user', domain: { name: 'default' }, password: 'secret' } },
      },
      scope: { project: { name: 'project', domain: { name: 'default' } } },
    },
  },
  {
    what: 'IDs, and a domain of the user',
    texts: { ...PASSWORD, tenantID: 't-1', domainID: 'd-1', userDomainName: 'people' },
    auth: {
      identity: { password: { user: { domain: { name: 'people' } } } },
      scope: { project: { id: 't-1' } },
    },
  },
  {
    what: 'an application credential by ID',
    texts: APPLICATION,
    auth: { identity: { methods: ['application_credential'], application_credential: { id: 'a-1', secret: 's' } } },
  },
  {
    what: 'an application credential by name',
    texts: {
      ...APPLICATION,
      applicationCredentialID: undefined,
      applicationCredentialName: 'n',
      username: 'user',
      userDomainID: 'd-1',
    },
    auth: {
      identity: { application_credential: { name: 'n', secret: 's', user: { name: 'user', domain: { id: 'd-1' } } } },
    },
  },
])('logs in with $what', ({ texts, auth }) => {
  expect(parseCredentials(secret(texts)).auth).toMatchObject(auth);
});

test.each([
  { url: 'https://a:5000/v3', want: 'https://a:5000/v3' },
  { url: 'https://a:5000/v3/\n', want: 'https://a:5000/v3' },
  { url: 'http://a/identity', want: 'http://a/identity/v3' },
])('finds Keystone at $url', ({ url, want }) => {
  expect(parseCredentials(secret({ ...PASSWORD, authURL: url })).authURL).toBe(want);
});

test.each([
  { texts: { ...PASSWORD, authURL: undefined }, says: 'authURL is missing' },
  { texts: { ...PASSWORD, authURL: 'keystone:5000' }, says: 'authURL must be a URL' },
  { texts: { ...PASSWORD, username: undefined }, says: 'username is missing' },
  { texts: { ...PASSWORD, password: undefined }, says: 'password is missing' },
  { texts: { ...PASSWORD, tenantName: undefined }, says: 'tenantName is missing' },
  { texts: { ...PASSWORD, domainName: undefined }, says: 'domainName is missing' },
  { texts: { ...PASSWORD, applicationCredentialSecret: 's' }, says: 'are both set' },
  {
    texts: { ...APPLICATION, applicationCredentialID: undefined },
    says: 'applicationCredentialID is missing',
  },
  { texts: { ...PASSWORD, insecure: 'maybe' }, says: 'insecure: must be true or false' },
  { texts: { ...PASSWORD, clientCert: 'pem' }, says: 'clientCert and clientKey must both be set' },
])('names the key that is wrong: $says', ({ texts, says }) => {
  expect(() => parseCredentials(secret(texts))).toThrow(says);
});
