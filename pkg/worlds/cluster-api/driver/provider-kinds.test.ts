import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { customResourceDefinitions } from '../../../kube/client/resource.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { ProviderKinds } from './provider-kinds.ts';

const { signal } = new AbortController();
const MINUTE = 60_000;

function worldOf(): { client: MemoryClient; clock: FakeClock; kinds: ProviderKinds; look: () => Promise<unknown> } {
  const [client, clock] = [new MemoryClient(), new FakeClock()];
  const labels = { 'cluster.x-k8s.io/v1beta2': 'v1' };
  const metadata = {
    name: 'hosts.metal.example.org',
    namespace: '',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
  };
  client.put(customResourceDefinitions, { metadata: { ...metadata, labels } });
  const kinds = new ProviderKinds({ reader: client, clock, log: silentLogger });
  return { client, clock, kinds, look: () => kinds.list('shoot', 'a=b', () => false, signal) };
}

test('which kinds there are is looked for once a minute', async () => {
  const { client, clock, look } = worldOf();
  await look();
  clock.advance(MINUTE - 1);
  await look();
  expect(client.reads).toEqual(['customresourcedefinitions', 'customresourcedefinitions', 'hosts', 'hosts']);

  clock.advance(1);
  await look();
  expect(client.reads.filter((one) => one === 'customresourcedefinitions')).toHaveLength(4);
});

test('a kind that may not be listed any more is lost until it may be; one that never could be is not', async () => {
  const { client, clock, kinds, look } = worldOf();
  client.readFailure = new ApiError(403, 'Forbidden', 'no');
  await look();
  const never = kinds.lost;
  client.readFailure = undefined;
  clock.advance(MINUTE);
  await look();
  client.readFailure = new ApiError(403, 'Forbidden', 'no');
  await look();
  const then = kinds.lost;
  client.readFailure = undefined;
  clock.advance(MINUTE);
  await look();

  expect([never, then, kinds.lost]).toEqual([[], ['hosts.metal.example.org'], []]);
});

test('a kind that may not be listed is left out for a minute; what else fails is told', async () => {
  const { client, clock, look } = worldOf();
  await look();
  client.readFailure = new ApiError(403, 'Forbidden', 'no');
  expect(await look()).toEqual([]);
  await look();
  expect(client.reads.filter((one) => one === 'hosts')).toHaveLength(2);

  client.readFailure = undefined;
  clock.advance(MINUTE);
  await look();
  expect(client.reads.filter((one) => one === 'hosts')).toHaveLength(3);
  for (const reason of ['InternalError', 'Unauthorized', 'NotServed']) {
    client.readFailure = new ApiError(500, reason, 'no');
    await expect(look()).rejects.toThrow('no');
  }
});
