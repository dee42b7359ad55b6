import { expect, test } from '@jest/globals';

import { classFrom, secretFrom } from './input.ts';

test('a class is taken as kubectl apply takes it', () => {
  const text = 'kind: MachineClass\nmetadata: { name: c }\nprovider: p\nproviderSpec: { size: small }\n';

  expect(classFrom(text, 'class.yaml')).toMatchObject({
    kind: 'MachineClass',
    metadata: { name: 'c', namespace: 'default' },
    provider: 'p',
    providerSpec: { size: 'small' },
  });
});

test('a Secret is taken with data and stringData, which wins', () => {
  const text = 'kind: Secret\ndata: { a: YQ==, b: YQ== }\nstringData: { b: b }\n';

  expect(secretFrom(text, 's.yaml')).toEqual({ a: Buffer.from('a'), b: Buffer.from('b') });
});

test.each([
  { what: 'no YAML', text: 'a: "password', says: /^s\.yaml: (?!.*password)/ },
  { what: 'another kind', text: 'kind: MachineClass', says: /^s\.yaml: expected a Secret, not MachineClass$/ },
  {
    what: 'not encoded',
    text: 'kind: Secret\ndata: { key: "pass-word" }',
    says: /^s\.yaml: data\.key is not valid base64; put values that are not encoded under stringData$/,
  },
  { what: 'cut off', text: 'kind: Secret\ndata: { key: YQ= }', says: /^s\.yaml: data\.key is not valid base64/ },
  { what: 'no object', text: 'password', says: /^s\.yaml: expected a Secret, not something else$/ },
])('of a Secret that is $what only the mistake is told', ({ text, says }) => {
  expect(() => secretFrom(text, 's.yaml')).toThrow(says);
});

test.each([
  { what: 'a name', text: 'kind: MachineClass\nproviderSpec: {}', says: 'metadata.name' },
  { what: 'a spec', text: 'kind: MachineClass\nmetadata: { name: c }', says: 'providerSpec' },
])('a class without $what is refused', ({ text, says }) => {
  expect(() => classFrom(text, 'c.yaml')).toThrow(`c.yaml: ${says} is missing`);
});
