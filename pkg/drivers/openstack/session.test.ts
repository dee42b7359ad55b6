import { beforeEach, describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { type Answer, NoAnswerError } from './answer.ts';
import type { HttpRequest } from './http.ts';
import { Session } from './session.ts';

const { signal } = new AbortController();
const TOKEN = {
  issued_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-01-01T01:00:00Z',
  project: { id: 'project-1' },
  catalog: [{ type: 'network', endpoints: [{ interface: 'public', region: 'r', url: 'http://neutron' }] }],
};
const LOGGED_IN: Answer = { status: 201, headers: { 'x-subject-token': 't' }, body: { token: TOKEN } };
const OK: Answer = { status: 200, headers: {}, body: {} };

let clock: FakeClock;
let asked: HttpRequest[];
/** What was counted. */
let told: string[];
let delayMs: number;
/** What the service does, one after the other; then it succeeds. */
let answers: (Answer | Error)[];

beforeEach(() => {
  clock = new FakeClock();
  asked = [];
  told = [];
  delayMs = 0;
  answers = [];
});

function failing(status: number, times: number): Answer[] {
  return Array.from({ length: times }, () => ({ status, headers: {}, body: '' }));
}

async function send(request: Partial<HttpRequest>): Promise<PromiseSettledResult<Answer>> {
  const http = {
    send: async (one: HttpRequest) => {
      if (one.url.endsWith('/auth/tokens')) return await Promise.resolve(LOGGED_IN);
      asked.push(one);
      if (delayMs > 0) await clock.sleep(delayMs, signal);
      const answer = answers.shift() ?? OK;
      return answer instanceof Error ? await Promise.reject(answer) : answer;
    },
    close: async () => await Promise.resolve(),
  };
  const tls = { ca: undefined, cert: undefined, key: undefined, isInsecure: false };
  const session = new Session(
    { authURL: 'http://keystone/v3', auth: {}, tls, interface: 'public' },
    clock,
    http,
    (labels, seconds) => told.push(`${Object.values(labels).join(' ')} ${seconds}`),
  );
  const sent = Promise.allSettled([
    session.send({ service: 'network', region: 'r', path: '/ports', method: 'GET', signal, ...request }),
  ]);
  for (let i = 0; i < 10; i++) await clock.advanceAsync(1_000);
  expect(await session.projectID(signal)).toBe('project-1');
  return (await sent)[0];
}

// promise: openstack/cloud/scale-few-logins-servers
test('fifty requests at once, and fifty later, cost one login; after most of the life of its token they cost another one', async () => {
  let logins = 0;
  const http = {
    send: async (one: HttpRequest) => {
      const isLogin = one.url.endsWith('/auth/tokens');
      if (isLogin) logins++;
      await clock.sleep(100, signal);
      return isLogin ? LOGGED_IN : OK;
    },
    close: async () => await Promise.resolve(),
  };
  const tls = { ca: undefined, cert: undefined, key: undefined, isInsecure: false };
  const credentials = { authURL: 'http://keystone/v3', auth: {}, tls, interface: 'public' as const };
  const session = new Session(credentials, clock, http, () => undefined);
  const sendFifty = async (): Promise<number> => {
    const request = { service: 'network', region: 'r', path: '/ports', method: 'GET', signal } as const;
    const all = Promise.all(Array.from({ length: 50 }, async () => await session.send(request)));
    for (let i = 0; i < 5; i++) await clock.advanceAsync(100);
    await all;
    return logins;
  };

  expect(await sendFifty()).toBe(1);
  await clock.advanceAsync(3_500_000);
  expect(await sendFifty()).toBe(1);
  await clock.advanceAsync(100_000);
  expect(await sendFifty()).toBe(2);
});

describe('a service that fails for a moment', () => {
  test.each([
    { method: 'GET', status: 500, times: 3 },
    { method: 'GET', status: 503, times: 3 },
    { method: 'DELETE', status: 500, times: 3 },
    { method: 'PUT', status: 500, times: 3 },
    { method: 'DELETE', status: 429, times: 3 },
    { method: 'POST', status: 500, times: 1 },
    { method: 'GET', status: 409, times: 1 },
  ] as const)('is sent a $method that it answers with $status $times times', async ({ method, status, times }) => {
    answers = failing(status, 5);

    const ended = await send({ method });

    expect(ended).toMatchObject({ status: 'fulfilled', value: { status } });
    expect(asked).toHaveLength(times);
  });

  test('is not sent twice what depends on what was there before', async () => {
    answers = failing(500, 1);

    const ended = await send({ method: 'PUT', headers: { 'if-match': 'revision_number=1' } });

    expect(ended).toMatchObject({ value: { status: 500 } });
    expect(asked).toHaveLength(1);
  });

  test('is counted with each request, the login among them', async () => {
    answers = [...failing(503, 1), new NoAnswerError('reset', true)];

    await send({ method: 'GET' });

    const times = ['identity POST 201 0', 'network GET 503 0', 'network GET none 0', 'network GET 200 0'];
    expect(told).toEqual(times);
  });

  test('is counted with the time that it took', async () => {
    delayMs = 1_500;

    await send({ method: 'DELETE' });

    expect(told).toEqual(['identity POST 201 0', 'network DELETE 200 1.5']);
  });

  test('is believed when it has recovered', async () => {
    answers = failing(500, 2);

    expect(await send({ method: 'DELETE' })).toMatchObject({ value: { status: 200 } });
  });

  test.each([
    { method: 'GET', times: 2, ended: 'fulfilled' },
    { method: 'DELETE', times: 1, ended: 'rejected' },
  ] as const)('that does not answer is asked $times times with $method', async ({ method, times, ended }) => {
    answers = [new NoAnswerError('reset', true)];

    expect((await send({ method })).status).toBe(ended);
    expect(asked).toHaveLength(times);
  });
});
