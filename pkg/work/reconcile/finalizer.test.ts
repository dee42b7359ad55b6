import { expect, test } from '@jest/globals';

import { CONTROL } from '../../kube/gate/gate.ts';
import { secrets } from '../../kube/client/resource.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { Finalizer } from './finalizer.ts';

const signal = new AbortController().signal;

function setup(finalizers: string[]) {
  const client = new MemoryClient();
  const secret = {
    metadata: { namespace: 'a', name: 's', uid: 'u', resourceVersion: '7', creationTimestamp: '', finalizers },
  };
  client.put(secrets, secret);
  return { client, secret, finalizer: new Finalizer(client, secrets, 'ours') };
}

test('is added behind the others, to the version that was read', async () => {
  const { client, secret, finalizer } = setup(['theirs']);

  await finalizer.add(secret, signal);

  expect(client.writes).toEqual([
    expect.objectContaining({
      intent: 'change',
      what: 'secrets/s',
      uid: 'u',
      resourceVersion: '7',
      body: { metadata: { finalizers: ['theirs', 'ours'] } },
    }),
  ]);
});

test('is not added twice', async () => {
  const { client, secret, finalizer } = setup(['ours']);

  expect([finalizer.holds(secret), await finalizer.add(secret, signal)]).toEqual([true, secret]);
  expect(client.writes).toEqual([]);
});

test.each([
  ['change', []],
  ['destroy', [CONTROL]],
] as const)('is removed with intent %s, which concerns clusters %j', async (intent, clusters) => {
  const { client, secret, finalizer } = setup(['ours', 'theirs']);

  await finalizer.remove(secret, signal, intent);

  expect(client.writes).toEqual([
    expect.objectContaining({ intent, clusters, resourceVersion: '7', body: { metadata: { finalizers: ['theirs'] } } }),
  ]);
});
