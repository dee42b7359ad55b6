import { describe, expect, test } from '@jest/globals';

import { machineClass, secret, type BuiltSecret } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { secrets } from '../../kube/client/resource.ts';
import { SecretContents } from './secret-contents.ts';
import { SECRET_INDEX, secretIndex } from '../../operator/indexes/secret-references.ts';

const signal = new AbortController().signal;
const oneClass = machineClass();

function withValue(name: string, value: string, resourceVersion = '1'): BuiltSecret {
  return secret((s) => {
    s.metadata.name = name;
    s.metadata.resourceVersion = resourceVersion;
    s.data = { key: Buffer.from(value).toString('base64') };
  });
}

function scene(...present: readonly BuiltSecret[]) {
  const client = new MemoryClient();
  client.put(secrets, ...present);
  const cache = new MemoryInformer<KubeObject>(present);
  const classes = new MemoryInformer([oneClass], { [SECRET_INDEX]: secretIndex });
  const contents = new SecretContents({ reader: client, secrets: cache, classes, clock: new FakeClock() });
  const valueOf = async (of = oneClass): Promise<string | undefined> => {
    const { data } = await contents.of(of, signal);
    return data['key'] === undefined ? undefined : Buffer.from(data['key']).toString();
  };
  const fingerprintOf = async (of: typeof oneClass): Promise<string> => (await contents.of(of, signal)).fingerprint;
  return { client, cache, valueOf, fingerprintOf };
}

describe('the data of a class', () => {
  test('is read once, and again when its Secret has changed', async () => {
    const { client, cache, valueOf } = scene(withValue('secret-1', 'old'));
    expect([await valueOf(), await valueOf()]).toEqual(['old', 'old']);
    expect(client.reads).toHaveLength(1);

    client.put(secrets, withValue('secret-1', 'new', '2'));
    cache.put(withValue('secret-1', 'new', '2'));

    expect(await valueOf()).toBe('new');
  });

  test('of credentialsSecretRef lies over that of secretRef', async () => {
    const { valueOf } = scene(withValue('secret-1', 'plain'), withValue('credentials', 'better'));

    expect(await valueOf(machineClass((c) => void (c.credentialsSecretRef = { name: 'credentials' })))).toBe('better');
  });

  test('counts as other data when the Secret comes, changes or goes that machines of the class start with', async () => {
    const { cache, client, fingerprintOf } = scene();
    const started = machineClass((c) => void (c.providerSpec = { bootstrap: { dataSecretName: 'data' } }));
    const seen = [await fingerprintOf(started)];
    for (const version of ['1', '2']) {
      cache.put(withValue('data', 'x', version));
      seen.push(await fingerprintOf(started));
    }
    const [same, alone] = [await fingerprintOf(started), await fingerprintOf(oneClass)];
    cache.remove('default/data');
    seen.push(await fingerprintOf(started));

    expect(new Set(seen).size).toBe(3);
    expect([same, await fingerprintOf(oneClass), seen.at(-1)]).toEqual([seen[2], alone, seen[0]]);
    expect(client.reads).not.toContainEqual(expect.stringContaining('data'));
  });

  test('is never taken from another namespace', async () => {
    const foreign = secret((s) => void Object.assign(s.metadata, { namespace: 'other' }));
    const { client, valueOf } = scene(foreign);

    expect(
      await valueOf(machineClass((c) => void (c.secretRef = { name: 'secret-1', namespace: 'other' }))),
    ).toBeUndefined();
    expect(client.reads).toEqual([]);
  });

  test('is not missing because it could not be read', async () => {
    const { client, valueOf } = scene(withValue('secret-1', 'there'));
    client.readFailure = new ApiError(503, 'ServiceUnavailable', 'no answer');

    await expect(valueOf()).rejects.toThrow('no answer');
  });

  test('is missing when there is no such Secret', async () => {
    const { valueOf } = scene();

    expect(await valueOf()).toBeUndefined();
  });
});
