import { describe, expect, test } from '@jest/globals';

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
  {
    what: 'a user by ID, who needs no domain',
    texts: {
      ...PASSWORD,
      username: undefined,
      userID: 'u-1',
      domainName: undefined,
      tenantName: undefined,
      tenantID: 't',
    },
    auth: { identity: { password: { user: { id: 'u-1', password: 'secret' } } }, scope: { project: { id: 't' } } },
  },
  {
    what: 'an application credential by name of a user by ID',
    texts: { ...APPLICATION, applicationCredentialID: undefined, applicationCredentialName: 'n', userID: 'u-1' },
    auth: { identity: { application_credential: { name: 'n', secret: 's', user: { id: 'u-1' } } } },
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
  { texts: { ...PASSWORD, interface: 'private' }, says: 'interface: must be one of public, internal, admin' },
  { texts: { ...PASSWORD, clientCert: 'pem' }, says: 'clientCert and clientKey must both be set' },
])('names the key that is wrong: $says', ({ texts, says }) => {
  expect(() => parseCredentials(secret(texts))).toThrow(says);
});

const CLOUDS = `
clouds:
  one:
    auth:
      auth_url: https://keystone.example:5000
      user_id: u-1
      password: 12345678
      project_name: project
      project_domain_name: Default
    region_name: r
    interface: internal
    verify: false
  two:
    auth: {auth_url: 'https://two', application_credential_id: a-1, application_credential_secret: s}
`;
const ONE =
  'clouds: {a: {auth: {auth_url: "https://k", application_credential_id: a, application_credential_secret: s}}}';

describe('a clouds.yaml', () => {
  test('says what the keys of a Secret say', () => {
    const read = parseCredentials(secret({ 'clouds.yaml': CLOUDS, cloud: 'one' }));

    expect(read).toEqual({
      authURL: 'https://keystone.example:5000/v3',
      auth: {
        identity: { methods: ['password'], password: { user: { id: 'u-1', password: '12345678' } } },
        scope: { project: { name: 'project', domain: { name: 'Default' } } },
      },
      tls: { ca: undefined, cert: undefined, key: undefined, isInsecure: true },
      interface: 'internal',
    });
    expect(parseCredentials(secret({ 'clouds.yaml': CLOUDS, cloud: 'two' }))).toMatchObject({
      authURL: 'https://two/v3',
      tls: { isInsecure: false },
      interface: 'public',
    });
  });

  test('of one cloud needs no choice, and goes with certificates beside it', () => {
    expect(parseCredentials(secret({ 'clouds.yaml': ONE, cacert: 'pem' }))).toMatchObject({
      authURL: 'https://k/v3',
      tls: { ca: 'pem' },
    });
    expect(parseCredentials(secret({ 'clouds.yaml': ONE, cacert: 'pem', caCert: 'other' })).tls.ca).toBe('other');
  });

  test.each([
    { texts: { 'clouds.yaml': CLOUDS }, says: 'clouds: has 2 clouds, name one of them in key cloud' },
    { texts: { 'clouds.yaml': CLOUDS, cloud: 'three' }, says: 'has no cloud of the name in key cloud' },
    { texts: { 'clouds.yaml': CLOUDS, cloud: 'toString' }, says: 'has no cloud of the name' },
    { texts: { 'clouds.yaml': ONE, authURL: 'https://x' }, says: 'authURL and clouds.yaml are both set' },
    { texts: { 'clouds.yaml': 'clouds: [' }, says: 'secret: clouds.yaml: line 1' },
    { texts: { 'clouds.yaml': 'clouds: {}' }, says: 'has 0 clouds' },
    { texts: { 'clouds.yaml': 'x' }, says: 'secret: clouds.yaml: must be an object' },
    {
      texts: { 'clouds.yaml': 'clouds: {a: {auth: {auth_url: [1]}}}' },
      says: 'clouds.a.auth.auth_url: must be a string',
    },
    { texts: { 'clouds.yaml': 'clouds: {a: {auth: {}}}' }, says: 'authURL is missing' },
  ])('that is wrong is told without its content: $says', ({ texts, says }) => {
    expect(() => parseCredentials(secret(texts))).toThrow(says);
  });
});
