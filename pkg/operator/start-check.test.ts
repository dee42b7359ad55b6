import { afterEach, describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../test/fakes/fake-clock.ts';
import { CONTROL } from '../kube/gate/gate.ts';
import type { OutageChangeListener, Outages } from '../kube/gate/outages.ts';
import { HeldWork } from '../health/held-work.ts';
import { ApiError } from '../kube/client/errors.ts';
import { type LogFields, silentLogger } from '../base/log/logger.ts';
import type { Permission } from './preflight/permissions.ts';
import type { ClusterAccess } from './clusters.ts';
import { StartCheck } from './start-check.ts';

const permission = (cluster: 'control' | 'target', verb: string, lost?: string): Permission => ({
  cluster,
  attributes: { verb, group: '', resource: 'things' },
  file: `deploy/rbac/${cluster}.yaml`,
  lost,
});
const needed = permission('control', 'patch');
const wanted = permission('control', 'create', 'something is lost');
const ofTarget = permission('target', 'delete');

const checks: StartCheck[] = [];
afterEach(async () => {
  for (const check of checks.splice(0)) await check.stop();
});

/** A start whose clusters answer as `answer` says, by verb: whether it is allowed, or the error with which they answer. */
function start(permissions: readonly Permission[], answers: Record<string, boolean | ApiError>) {
  const clock = new FakeClock();
  const held = new HeldWork({ clock });
  const lines: { level: string; message: string; err: unknown }[] = [];
  const record =
    (level: string) =>
    ({ err }: LogFields, message: string): void =>
      void lines.push({ level, message, err: err instanceof Error ? err.message : err });
  const log = { ...silentLogger, warn: record('warn'), info: record('info') };
  let asked: string[] = [];
  const review = ({ body }: { body: { spec: { resourceAttributes: { verb: string } } } }): Promise<unknown> => {
    const { verb } = body.spec.resourceAttributes;
    asked.push(verb);
    const answer = answers[verb];
    return answer instanceof ApiError ? Promise.reject(answer) : Promise.resolve({ status: { allowed: answer } });
  };
  const request = (): Promise<unknown> => Promise.resolve({});
  const access = (cluster: string): ClusterAccess =>
    ({
      cluster,
      transport: { review, request, answeredSince: () => new Promise(() => undefined) },
    }) as unknown as ClusterAccess;
  const listeners: OutageChangeListener[] = [];
  const outages = {
    state: () => undefined,
    onChange: (listener: OutageChangeListener) => void listeners.push(listener),
  } as unknown as Outages;
  const hasTarget = permissions.some(({ cluster }) => cluster === 'target');
  const clusters = { control: access(CONTROL), target: hasTarget ? access('target') : undefined };
  const check = new StartCheck({ clusters, permissions, clock, log, outages, held });
  checks.push(check);
  const started = check.start(new AbortController().signal);
  let outcome = 'waiting';
  started.then(
    () => (outcome = 'started'),
    (err: unknown) => (outcome = String(err)),
  );
  return {
    clock,
    held,
    lines,
    outcome: () => outcome,
    asked: () => {
      const since = asked;
      asked = [];
      return since;
    },
    beginOutage: () => {
      for (const told of listeners) told({ cluster: 'target', isOver: false } as Parameters<typeof told>[0]);
    },
  };
}

const MISSING =
  'CannotStartError: missing permissions in the control cluster: patch things.core: apply deploy/rbac/control.yaml';

describe('a start', () => {
  test('goes on when all is granted, and says nothing', async () => {
    const { clock, held, lines, outcome } = start([needed, wanted], { patch: true, create: true });
    await clock.advanceAsync(60_000);

    expect(outcome()).toBe('started');
    expect(lines).toEqual([]);
    expect(held.list()).toEqual([]);
  });

  test('without what nothing works without waits, is shown as held, and then fails with one line', async () => {
    const { clock, held, outcome } = start([needed], { patch: false });
    await clock.advanceAsync(9_000);
    const before = { outcome: outcome(), held: held.list() };
    await clock.advanceAsync(10_000);

    expect(before).toMatchObject({
      outcome: 'waiting',
      held: [{ work: 'process', waitsFor: 'permissions', of: CONTROL, why: expect.stringContaining('patch things') }],
    });
    expect(outcome()).toBe(MISSING);
    expect(held.list()).toEqual([]);
  });

  test('goes on when that is granted a moment later, and does not ask again for what was granted before', async () => {
    const answers = { patch: false, create: true };
    const { clock, asked, outcome } = start([needed, wanted], answers);
    await clock.advanceAsync(0);
    const first = asked();
    answers.patch = true;
    answers.create = false;
    await clock.advanceAsync(5_000);

    expect(first.toSorted()).toEqual(['create', 'patch']);
    expect([...new Set(asked())]).toEqual(['patch']);
    expect(outcome()).toBe('started');
  });

  test('goes on at once without what only a part of the work needs, tells of it later, once, and when it was granted', async () => {
    const answers = { patch: true, create: false };
    const { clock, lines, outcome } = start([needed, wanted], answers);
    await clock.advanceAsync(0);
    const atOnce = { outcome: outcome(), lines: [...lines] };
    await clock.advanceAsync(1_200_000);
    const told = [...lines];
    answers.create = true;
    await clock.advanceAsync(300_000);

    expect(atOnce).toEqual({ outcome: 'started', lines: [] });
    expect(told).toEqual([
      {
        level: 'warn',
        message: 'permissions are missing',
        err: 'missing permissions in the control cluster: create things.core: apply deploy/rbac/control.yaml (without: something is lost)',
      },
    ]);
    expect(lines.slice(told.length)).toEqual([{ level: 'info', message: 'permissions were granted', err: undefined }]);
  });

  test('says nothing of what is granted while roles are still being applied', async () => {
    const answers = { create: false };
    const { clock, lines } = start([wanted], answers);
    await clock.advanceAsync(5_000);
    answers.create = true;
    await clock.advanceAsync(600_000);

    expect(lines).toEqual([]);
  });

  test('with credentials that the server does not accept fails with one line, which blames no role', async () => {
    const { clock, lines, outcome } = start([needed], { patch: new ApiError(401, 'Unauthorized', 'Unauthorized') });
    await clock.advanceAsync(30_000);

    expect(outcome()).toBe(
      'CannotStartError: the control cluster rejects the credentials of its kubeconfig; correct them (Unauthorized)',
    );
    expect(lines).toEqual([]);
  });

  test('waits for a control cluster that does not answer for as long as it takes', async () => {
    const answers: Record<string, boolean | ApiError> = { patch: new ApiError(0, 'Unreachable', 'connection refused') };
    const { clock, lines, outcome } = start([needed], answers);
    await clock.advanceAsync(3_600_000);
    const during = outcome();
    answers['patch'] = true;
    await clock.advanceAsync(10_000);

    expect(during).toBe('waiting');
    expect(outcome()).toBe('started');
    // Others tell of the cluster.
    expect(lines).toEqual([]);
  });

  test('does not wait for a target that has an outage, and only tells what is missing when it answers', async () => {
    const answers: Record<string, boolean | ApiError> = {
      delete: new ApiError(0, 'Unreachable', 'connection refused'),
    };
    const { clock, lines, outcome, beginOutage } = start([ofTarget], answers);
    await clock.advanceAsync(1_000);
    const before = outcome();
    beginOutage();
    await clock.advanceAsync(0);
    const during = outcome();
    answers['delete'] = false;
    await clock.advanceAsync(60_000);

    expect({ before, during }).toEqual({ before: 'waiting', during: 'started' });
    expect(lines.filter(({ message }) => message === 'permissions are missing')).toHaveLength(1);
    expect(outcome()).toBe('started');
  });

  test.each([
    new ApiError(404, 'NotServed', 'server answered 404'),
    new ApiError(405, 'MethodNotAllowed', 'reads only'),
    new ApiError(500, 'InternalError', 'no authorizer'),
  ])('goes on where it cannot ask what it may do: $message', async (err) => {
    const { clock, lines, outcome } = start([needed], { patch: err });
    await clock.advanceAsync(30_000);

    expect(outcome()).toBe('started');
    expect(lines.at(-1)).toMatchObject({ level: 'warn', message: 'could not check permissions' });
  });
});
