import { expect, test } from '@jest/globals';

import { userDataIn } from './play-provider.ts';

const NOT_FOUND = { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 };

test.each([
  { status: 404, body: NOT_FOUND, secret: 's', says: 'Secret s does not exist in namespace machinist; create it' },
  { status: 403, body: {}, secret: 's', says: 'Secret s cannot be read: the API server answered 403' },
  {
    status: 200,
    body: { data: { other: 'eA==' } },
    secret: 's',
    says: 'Secret s has no key "value"; put the bootstrap data there',
  },
  {
    status: 200,
    body: {},
    secret: undefined,
    says: 'waiting for bootstrap data: the Machine does not reference a Secret yet',
  },
])('a provider of the demo says of a Secret $secret, $status: $says', async ({ status, body, secret, says }) => {
  const answer = await userDataIn({ request: () => Promise.resolve({ status, body }) }, secret).catch(String);

  expect(answer).toBe(`Error: ${says}`);
});

test('a machine of the demo starts with what its Secret has', async () => {
  const body = { data: { value: Buffer.from('#!/bin/sh').toString('base64') } };

  const data = await userDataIn({ request: () => Promise.resolve({ status: 200, body }) }, 's');

  expect(Buffer.from(data).toString()).toBe('#!/bin/sh');
});
