import { expect, test } from '@jest/globals';

import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Secret } from '../../../apis/wire.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { DataSecrets } from './data-secrets.ts';

const PLACE = { namespace: 'ns', name: 's' };
const signal = new AbortController().signal;
const secret = (resourceVersion: string, data: Record<string, string> = {}): Secret => ({
  metadata: { ...PLACE, uid: 'u', resourceVersion, creationTimestamp: '' },
  data,
});

/** What the cache and the server know; how often the server was asked. */
function world(cached: KubeObject | undefined, live: Secret | ApiError) {
  let asked = 0;
  const secrets = new MemoryInformer<KubeObject>(cached === undefined ? [] : [cached]);
  const get = (): Promise<Secret> => {
    asked += 1;
    return live instanceof ApiError ? Promise.reject(live) : Promise.resolve(live);
  };
  const look = new DataSecrets({ secrets, reader: { get } as unknown as Reader });
  return { secrets, asked: () => asked, look: () => look.troubleWith(PLACE, signal) };
}

test.each([
  { what: 'that is missing', live: new ApiError(404, 'NotFound', 'no'), want: 'DataSecretMissing' },
  { what: 'that the cache does not know yet', live: secret('1', { value: 'eA==' }), want: undefined },
  { what: 'without the key', live: secret('1', { other: 'eA==' }), want: 'DataSecretEmpty' },
  { what: 'without anything under the key', live: secret('1', { value: '' }), want: 'DataSecretEmpty' },
  { what: 'that we may not read', live: new ApiError(403, 'Forbidden', 'no'), want: undefined },
])('the trouble with a Secret $what is $want', async ({ live, want }) => {
  expect((await world(undefined, live).look())?.reason).toBe(want);
});

test('a Secret is read once for each of its versions', async () => {
  const { secrets, asked, look } = world(secret('1'), secret('1', { value: 'eA==' }));
  await look();
  await look();
  expect(asked()).toBe(1);

  secrets.put(secret('2'));
  await look();
  expect(asked()).toBe(2);
});

test('a failure is thrown', async () => {
  await expect(world(undefined, new ApiError(500, 'InternalError', 'no')).look()).rejects.toThrow('no');
});
