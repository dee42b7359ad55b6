import { expect, test } from '@jest/globals';

import { accountOf, isAccountOf } from './account.ts';

const metadata = { name: 'c', namespace: 'shoot', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
const ref = (name: string, namespace?: string) => ({ name, ...(namespace === undefined ? {} : { namespace }) });

test.each([
  {
    what: 'the credentials',
    refs: { secretRef: ref('user-data', 'a'), credentialsSecretRef: ref('cloud', 'b') },
    want: 'aws/b/cloud',
  },
  { what: 'the only Secret', refs: { secretRef: ref('both', 'a') }, want: 'aws/a/both' },
  { what: 'one in the namespace of the class', refs: { secretRef: ref('both') }, want: 'aws/shoot/both' },
  { what: 'none', refs: {}, want: 'aws/shoot/' },
])('calls are counted by $what', ({ refs, want }) => {
  expect(accountOf('aws', { metadata, ...refs })).toBe(want);
});

test.each([
  { account: 'a/default/cloud', provider: 'a', isOf: true },
  { account: 'a/default/', provider: 'a', isOf: true },
  { account: 'a/b/default/cloud', provider: 'a', isOf: false },
  { account: 'a/b/default/cloud', provider: 'a/b', isOf: true },
  { account: 'ab/default/cloud', provider: 'a', isOf: false },
])('the account $account is one of the provider $provider: $isOf', ({ account, provider, isOf }) => {
  expect(isAccountOf(account, provider)).toBe(isOf);
});
