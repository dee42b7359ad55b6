import { expect, test } from '@jest/globals';

import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryClient } from '../../../../test/memory-client.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { customResourceDefinitions } from '../../../kube/client/resource.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import { ProviderKinds } from './provider-kinds.ts';

const { signal } = new AbortController();
const MINUTE = 60_000;

type Look = () => Promise<{ readonly found: readonly unknown[]; readonly lost: readonly string[] }>;

function worldOf(...more: readonly string[]): {
  client: MemoryClient;
  clock: FakeClock;
  kinds: ProviderKinds;
  look: Look;
} {
  const [client, clock] = [new MemoryClient(), new FakeClock()];
  const labels = { 'cluster.x-k8s.io/v1beta2': 'v1' };
  for (const plural of ['hosts', ...more]) {
    const metadata = { namespace: '', uid: 'u', resourceVersion: '1', creationTimestamp: '', labels };
    client.put(customResourceDefinitions, { metadata: { ...metadata, name: `${plural}.metal.example.org` } });
  }
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
  const { client, clock, look } = worldOf();
  client.readFailure = new ApiError(403, 'Forbidden', 'no');
  const never = await look();
  client.readFailure = undefined;
  clock.advance(MINUTE);
  await look();
  client.readFailure = new ApiError(403, 'Forbidden', 'no');
  const then = await look();
  client.readFailure = undefined;
  const still = await look();
  clock.advance(MINUTE);

  const lost = [never, then, still, await look()].map((one) => one.lost);
  expect(lost).toEqual([[], ['hosts.metal.example.org'], ['hosts.metal.example.org'], []]);
});

test('a kind is lost, too, which was looked at as that of its class before, and where kinds cannot be listed any more', async () => {
  const { client, clock, kinds, look } = worldOf();
  await kinds.list('shoot', 'a=b', () => true, signal);
  client.readFailure = new ApiError(403, 'Forbidden', 'no');
  const { lost } = await look();
  clock.advance(MINUTE);

  expect([lost, (await look()).lost]).toEqual([['hosts.metal.example.org'], ['customresourcedefinitions']]);
});

test('of a kind that may be listed in one namespace nothing is lost in another', async () => {
  const { client, kinds, look } = worldOf();
  await look();
  client.readFailure = new ApiError(403, 'Forbidden', 'no');
  const other = await kinds.list('other', 'a=b', () => false, signal);
  client.readFailure = undefined;

  expect([other.lost, (await look()).lost]).toEqual([[], []]);
  expect(client.reads.filter((one) => one === 'hosts')).toHaveLength(3);
});

test('a kind that a look has left out is lost for it, whatever another look does meanwhile', async () => {
  const { client, clock, look } = worldOf('pools');
  await look();
  let goOn: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  const list = client.list.bind(client);
  client.list = async (resource) => {
    if (resource.plural === 'hosts') throw new ApiError(403, 'Forbidden', 'no');
    if (resource.plural === 'pools') await held;
    return await list(resource);
  };
  const first = look();
  await new Promise((resolve) => setImmediate(resolve));
  client.list = list;
  clock.advance(MINUTE);
  expect((await look()).lost).toEqual([]);
  goOn();

  expect((await first).lost).toEqual(['hosts.metal.example.org']);
});

test('a kind that may not be listed is left out for a minute; what else fails is told', async () => {
  const { client, clock, look } = worldOf();
  await look();
  client.readFailure = new ApiError(403, 'Forbidden', 'no');
  expect((await look()).found).toEqual([]);
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
