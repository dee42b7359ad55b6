import { expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { HeldWork } from '../health/held-work.ts';
import type { Reader } from '../kube/client/client.ts';
import { ApiError } from '../kube/client/errors.ts';
import { silentLogger } from '../base/log/logger.ts';
import { ClusterIdentity } from './cluster-identity.ts';

const NO_ANSWER = new ApiError(0, 'Unknown', 'no answer');

/** The identity of the cluster that a kubeconfig leads to; `answers`: what each server says of it. */
function scene(answers: Record<string, string | Error>) {
  const clock = new FakeClock();
  const endpoint = { url: 'https://a' };
  const lost: string[] = [];
  const asked: string[] = [];
  const get = (): Promise<unknown> => {
    const { url } = endpoint;
    asked.push(url);
    const answer = answers[url];
    return typeof answer === 'string' ? Promise.resolve({ metadata: { uid: answer } }) : Promise.reject(answer);
  };
  const identity = new ClusterIdentity({
    clock,
    log: silentLogger,
    held: new HeldWork({ clock }),
    reader: { get } as unknown as Reader,
    endpoint,
    lost: (reason, err) => lost.push(err instanceof Error ? err.message : reason),
  });
  const uid = (): string => {
    try {
      return identity.uid;
    } catch (err) {
      return String(err);
    }
  };
  return { clock, endpoint, identity, lost, asked, uid };
}

const started = async (answers: Record<string, string | Error>) => {
  const it = scene(answers);
  await it.identity.start(new AbortController().signal);
  return it;
};

test('the identity of the cluster is read once, and none is known before', async () => {
  const it = scene({ 'https://a': 'one' });
  it.identity.check();
  expect(it.uid()).toMatch('before the identity of the cluster is known');

  await it.identity.start(new AbortController().signal);
  it.identity.check();

  expect([it.uid(), it.uid(), it.asked]).toEqual(['one', 'one', ['https://a']]);
});

test('an answer without a UID is not the identity of the cluster, which is asked again', async () => {
  const answers = { 'https://a': '' };
  const it = scene(answers);
  const starting = it.identity.start(new AbortController().signal);
  await it.clock.advanceAsync(0);
  answers['https://a'] = 'one';

  await it.clock.advanceAsync(60_000);
  await starting;

  expect([it.uid(), it.asked.length]).toEqual(['one', 2]);
});

test('drivers are called again when another server of the kubeconfig says that it is the same cluster', async () => {
  const { endpoint, uid, clock, lost, asked } = await started({ 'https://a': 'one', 'https://b': 'one' });
  endpoint.url = 'https://b';

  expect([uid(), uid()]).toEqual(Array.from({ length: 2 }, () => expect.stringMatching('DriverError.*another server')));
  await clock.advanceAsync(0);

  expect([uid(), lost, asked]).toEqual(['one', [], ['https://a', 'https://b']]);
});

test('a process whose kubeconfig leads to another cluster ends, and calls no driver until then', async () => {
  const { endpoint, identity, uid, clock, lost } = await started({ 'https://a': 'one', 'https://b': 'two' });
  endpoint.url = 'https://b';
  identity.check();
  await clock.advanceAsync(0);

  expect(lost).toEqual(['the kubeconfig of the control cluster refers to another cluster now']);
  expect(uid()).toMatch('another server');
});

test('what answered may be either of two servers when the kubeconfig has changed meanwhile: it is asked again', async () => {
  const { endpoint, identity, uid, clock, lost, asked } = await started({
    'https://a': 'one',
    'https://b': 'two',
    'https://c': 'one',
  });
  endpoint.url = 'https://b';
  identity.check();
  endpoint.url = 'https://c';
  await clock.advanceAsync(0);

  expect([uid(), lost, asked]).toEqual(['one', [], ['https://a', 'https://b', 'https://c']]);
});

test('a server that does not answer is asked until it does, or the process ends', async () => {
  const answers: Record<string, string | Error> = { 'https://a': 'one', 'https://b': NO_ANSWER };
  const { endpoint, identity, uid, clock, lost, asked } = await started(answers);
  endpoint.url = 'https://b';
  identity.check();
  await clock.advanceAsync(60_000);
  expect(asked.length).toBeGreaterThan(5);
  expect(uid()).toMatch('another server');

  await identity.stop();
  expect(lost).toEqual([]);
});
