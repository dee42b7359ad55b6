import { expect, test } from '@jest/globals';

import { ClusterContinuity } from '../kube/cache/cluster-continuity.ts';
import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { RefusedError } from '../kube/gate/outage.ts';
import type { ProbedCluster } from '../kube/gate/outage-detector.ts';
import { ApiError } from '../kube/client/errors.ts';
import { errorOfAnswer } from '../kube/client/failure.ts';
import { machines } from '../kube/client/resource.ts';
import { type ProbedKind, probesOf } from './probes.ts';

const signal = new AbortController().signal;
const statusOf = (code: number): string => JSON.stringify({ kind: 'Status', code, message: 'no' });
const OUTAGE = { cluster: 'any', sinceMs: 0, why: 'no answer' };
const probed = (cluster: string): { probed: ProbedCluster; continuity: ClusterContinuity } => ({
  continuity: new ClusterContinuity(new FakeClock()),
  probed: { cluster, probe: () => Promise.resolve() },
});

/** A cache whose server answers, or does not. */
function kind(isReachable: boolean): ProbedKind {
  return {
    resource: machines,
    namespace: undefined,
    labelSelector: undefined,
    reader: {
      get: () => Promise.reject(new Error('not asked for')),
      list: () =>
        isReachable
          ? Promise.resolve({ metadata: { resourceVersion: '7' }, items: [] })
          : Promise.reject(new ApiError(0, 'Unreachable', 'no route to host')),
    },
    informer: {
      waitFor: () => Promise.resolve(),
      waitUntilWatching: () => Promise.resolve(),
      reread: () => Promise.reject(new Error('not asked for')),
      abandon: () => undefined,
    },
    giveUp: () => undefined,
  };
}

test.each([
  { answer: new ApiError(403, 'Forbidden', 'nodes is forbidden'), isRefused: true },
  { answer: new ApiError(401, 'Unauthorized', 'Unauthorized'), isRefused: true },
  { answer: new ApiError(0, 'Unreachable', 'connection refused'), isRefused: false },
  { answer: new ApiError(500, 'InternalError', 'etcd is gone'), isRefused: false },
])('a probe tells a refusal from no answer: $answer.message', async ({ answer, isRefused }) => {
  const access = { ...probed('control'), probed: { cluster: 'control', probe: () => Promise.reject(answer) } };
  const [probe] = probesOf([access], []);

  const told: unknown = await probe?.probe(signal).catch((err: unknown) => err);

  expect(told).toMatchObject({ message: answer.message });
  expect(told instanceof RefusedError).toBe(isRefused);
});

test.each([
  { what: 'a refusal by an API server', code: 403, text: statusOf(403), isAnswer: true },
  { what: 'an API server whose etcd does not respond', code: 500, text: statusOf(500), isAnswer: true },
  {
    what: 'an API server that sheds load',
    code: 429,
    text: 'Too many requests, please try again later.',
    isAnswer: true,
  },
  { what: 'a proxy that finds no cluster', code: 404, text: '<html>', isAnswer: false },
  { what: 'a proxy that refuses', code: 403, text: '<html>', isAnswer: false },
  { what: 'a proxy that finds no API server', code: 503, text: 'no healthy upstream', isAnswer: false },
])('a probe that ends with $what is answered by the API server: $isAnswer', async ({ code, text, isAnswer }) => {
  const answer = errorOfAnswer(code, undefined, text, 0);
  const access = { ...probed('control'), probed: { cluster: 'control', probe: () => Promise.reject(answer) } };
  const [probe] = probesOf([access], []);

  const told: unknown = await probe?.probe(signal).catch((err: unknown) => err);

  expect(probe?.isAnswer?.(told)).toBe(isAnswer);
});

test('the control cluster comes back from an outage while its target stays away', async () => {
  const caches = [
    { cluster: 'control', kinds: [kind(true)] },
    { cluster: 'target', kinds: [kind(false)] },
  ];
  const [control, target] = probesOf([probed('control'), probed('target')], caches);

  await expect(control?.catchUp?.(signal, OUTAGE)).resolves.toBeUndefined();
  await expect(target?.catchUp?.(signal, OUTAGE)).rejects.toThrow('no route to host');
});

test('a cluster that is control and target is probed once, and catches up with all of its caches', async () => {
  const both = probed('control');
  const caches = [
    { cluster: 'control', kinds: [kind(true)] },
    { cluster: 'control', kinds: [kind(false)] },
  ];
  const probes = probesOf([both, both], caches);

  expect(probes).toHaveLength(1);
  await expect(probes[0]?.catchUp?.(signal, OUTAGE)).rejects.toThrow('no route to host');
});

test('a cluster comes back from an outage without a kind that was given up', async () => {
  const caches = [{ cluster: 'control', kinds: [kind(true), { ...kind(false), isGivenUp: true }] }];
  const [control] = probesOf([probed('control')], caches);

  await expect(control?.catchUp?.(signal, OUTAGE)).resolves.toBeUndefined();
});

test.each([
  { stored: '5', end: 'read anew' },
  { stored: '4', end: 'ServerAheadError' },
])('what is read anew at 5, and stored at $stored: $end', async ({ stored, end }) => {
  const one = kind(true);
  const taken: string[] = [];
  const listed = { namespace: 'shoot', name: 'm-1', uid: 'u', resourceVersion: '5', isDeletion: false };
  const get = () => Promise.resolve({ metadata: { ...listed, resourceVersion: stored } } as never);
  const reread = () => Promise.resolve({ samples: [listed], take: () => void taken.push('read anew') });
  const caches = [
    {
      cluster: 'control',
      kinds: [{ ...one, reader: { ...one.reader, get }, informer: { ...one.informer, reread } }],
    },
  ];
  const [control] = probesOf([probed('control')], caches);

  await control?.catchUp?.(signal, { ...OUTAGE, isSetBack: true }).catch((err: Error) => taken.push(err.name));

  expect(taken).toEqual([end]);
});

test.each([
  { code: 404, reason: 'NotServed', isGivenUp: true, end: ['abandoned', 'read anew'] },
  { code: 403, reason: 'Forbidden', isGivenUp: true, end: ['abandoned', 'read anew'] },
  { code: 403, reason: 'Forbidden', isGivenUp: false, end: ['may not read it yet'] },
  { code: 401, reason: 'Unauthorized', isGivenUp: true, end: ['no'] },
])(
  'what is refused ($reason) while all is read anew, given up: $isGivenUp',
  async ({ code, reason, isGivenUp, end }) => {
    const told: string[] = [];
    const one = kind(true);
    const taken = () => Promise.resolve({ samples: [], take: () => void told.push('read anew') });
    const refused: ProbedKind = {
      ...one,
      informer: {
        ...one.informer,
        reread: () => Promise.reject(new ApiError(code, reason, 'no')),
        abandon: () => void told.push('abandoned'),
      },
      giveUp: () => {
        if (!isGivenUp) throw new Error('may not read it yet');
      },
    };
    const kinds = [refused, { ...one, informer: { ...one.informer, reread: taken } }];
    const [control] = probesOf([probed('control')], [{ cluster: 'control', kinds }]);

    await control?.catchUp?.(signal, { ...OUTAGE, isSetBack: true }).catch((err: Error) => told.push(err.message));

    expect(told).toEqual(end);
  },
);

test('what is absent where those with a label are read anew may be stored without it', async () => {
  const one = { ...kind(true), labelSelector: 'watched' };
  const absent = { namespace: 'shoot', name: 'm-1', uid: 'u', resourceVersion: '5', isDeletion: true };
  const get = () => Promise.resolve({ metadata: { ...absent, resourceVersion: '4', labels: {} } } as never);
  const taken: string[] = [];
  const reread = () => Promise.resolve({ samples: [absent], take: () => void taken.push('read anew') });
  const kinds = [{ ...one, reader: { ...one.reader, get }, informer: { ...one.informer, reread } }];
  const [control] = probesOf([probed('control')], [{ cluster: 'control', kinds }]);

  await control?.catchUp?.(signal, { ...OUTAGE, isSetBack: true });

  expect(taken).toEqual(['read anew']);
});
