import { describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { DriverError } from '../../driver/error.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError } from '../../kube/client/errors.ts';
import type { LogFields, Logger } from '../../base/log/logger.ts';
import { reconcileMetrics } from '../../base/metrics/reconcile.ts';
import { next, requeue, stop, waitFor } from './result.ts';
import { Worker, type Reconcile } from './worker.ts';

/** A logger that keeps what it was told. */
function recordingLogger() {
  const lines: { level: string; fields: LogFields; message: string }[] = [];
  const at = (bound: LogFields): Logger => {
    const say = (level: string) => (fields: LogFields, message: string) =>
      void lines.push({ level, fields: { ...bound, ...fields }, message });
    return {
      error: say('error'),
      warn: say('warn'),
      info: say('info'),
      debug: say('debug'),
      child: (fields) => at({ ...bound, ...fields }),
    };
  };
  return { log: at({}), lines };
}

function workerOf(reconcile: Reconcile) {
  const clock = new FakeClock();
  const registry = new Registry();
  const { log, lines } = recordingLogger();
  const metrics = reconcileMetrics(registry);
  const worker = new Worker({ controller: 'machine', reconcile, timeoutMs: 60_000, clock, log, metrics });
  const never = new AbortController().signal;
  const run = (failures = 0, signal = never) => worker.work('ns/m-1', { signal, failures });
  return { run, clock, lines, registry };
}

function throwing(err: unknown): Reconcile {
  return async () => {
    throw err;
  };
}

const several = (...errors: readonly Error[]): Error => new AggregateError(errors, 'x');

describe('a pass', () => {
  test.each([
    { step: next, want: { kind: 'done' }, result: 'success' },
    { step: stop, want: { kind: 'done' }, result: 'success' },
    { step: waitFor('Node to join'), want: { kind: 'done' }, result: 'success' },
    { step: requeue(700, 'VM'), want: { kind: 'again', afterMs: 700 }, result: 'requeue' },
  ])('that ends with $step counts as $result', async ({ step, want, result }) => {
    const { run, registry } = workerOf(() => Promise.resolve(step));

    expect(await run()).toEqual(want);
    expect(await registry.metrics()).toContain(
      `machinist_reconcile_passes_total{controller="machine",result="${result}"} 1`,
    );
  });

  test.each([
    {
      what: 'an outage',
      err: new GateClosedError('outage', 'target', 'x'),
      want: { kind: 'again', afterMs: 5_000, keepFailures: true },
      result: 'gate_closed',
      level: 'debug',
    },
    {
      what: 'an unproven cluster',
      err: new GateClosedError('unproven', 'target', 'x'),
      want: { kind: 'again', afterMs: 5_000, keepFailures: true },
      result: 'gate_closed',
      level: 'debug',
    },
    {
      what: 'a closed fence',
      err: new GateClosedError('fenced', undefined, 'x'),
      // Leadership may only be suspended.
      want: { kind: 'again', afterMs: 5_000, keepFailures: true },
      result: 'gate_closed',
      level: 'debug',
    },
    {
      what: 'a conflict',
      err: new ApiError(409, 'Conflict', 'x'),
      want: { kind: 'retry', maxMs: 1_000 },
      result: 'conflict',
      level: 'debug',
    },
    {
      what: 'a server that was not reached',
      err: new ApiError(0, 'Unreachable', 'x'),
      want: { kind: 'retry', maxMs: 3_000 },
      result: 'api_error',
      level: 'warn',
    },
    {
      what: 'an API error',
      err: new ApiError(500, 'InternalError', 'x'),
      want: { kind: 'retry' },
      result: 'api_error',
      level: 'warn',
    },
    {
      what: 'a driver error',
      err: new DriverError('Unavailable', 'x'),
      want: { kind: 'retry' },
      result: 'driver_error',
      level: 'warn',
    },
    { what: 'a bug', err: new TypeError('x'), want: { kind: 'retry' }, result: 'bug', level: 'error' },
    {
      what: 'several API errors and a conflict',
      err: several(new ApiError(409, 'Conflict', 'x'), new ApiError(403, 'Forbidden', 'x')),
      want: { kind: 'retry' },
      result: 'api_error',
      level: 'warn',
    },
    {
      what: 'several failures at a gate that has closed meanwhile',
      err: several(new ApiError(0, 'Unreachable', 'x'), new GateClosedError('outage', 'target', 'x')),
      want: { kind: 'again', afterMs: 5_000, keepFailures: true },
      result: 'gate_closed',
      level: 'debug',
    },
    {
      what: 'a bug among other failures',
      err: several(new GateClosedError('outage', 'target', 'x'), new TypeError('x')),
      want: { kind: 'retry' },
      result: 'bug',
      level: 'error',
    },
  ])('that meets $what ends as $result, the third time at level $level', async ({ err, want, result, level }) => {
    const { run, registry, lines } = workerOf(throwing(err));

    const outcome = await run(2);

    expect(outcome).toEqual(want);
    expect(lines.at(-1)?.level).toBe(level);
    expect(await registry.metrics()).toContain(
      `machinist_reconcile_passes_total{controller="machine",result="${result}"} 1`,
    );
  });

  test('of failures in a row the third is told, and each tenth', async () => {
    const { run, lines } = workerOf(throwing(new Error('x')));

    for (let before = 0; before < 20; before++) await run(before);

    const told = lines.flatMap(({ level, fields }) => (level === 'debug' ? [] : [fields['failures']]));
    expect(told).toEqual([3, 10, 20]);
  });

  test('a bug is logged as what it is, a known error with its code only', async () => {
    const bug = new TypeError('x is undefined');
    const { run, lines } = workerOf(throwing(bug));
    const known = workerOf(throwing(new ApiError(403, 'Forbidden', 'not allowed')));

    await run(2);
    await known.run(2);

    expect(lines[0]?.fields['err']).toBe(bug);
    expect(known.lines[0]?.fields).toMatchObject({ code: 'Forbidden', reason: 'not allowed' });
    expect(known.lines[0]?.fields).not.toHaveProperty('err');
  });

  test('something thrown that is no error is a bug too', async () => {
    const { run, lines } = workerOf(throwing('oops'));

    expect(await run(2)).toEqual({ kind: 'retry' });
    expect(lines[0]?.fields['err']).toBe('oops');
  });

  test('longer than its time is aborted, and counts as a timeout whatever it throws', async () => {
    const { run, clock, registry } = workerOf(
      (_key, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new ApiError(0, 'Unreachable', 'aborted')));
        }),
    );
    const running = run();

    clock.advance(60_000);

    expect(await running).toEqual({ kind: 'retry' });
    expect(await registry.metrics()).toContain('result="timeout"} 1');
  });

  test('aborted by shutdown is no failure and is not run again', async () => {
    const abort = new AbortController();
    const { run, lines } = workerOf(
      (_key, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
    );
    const running = run(5, abort.signal);

    abort.abort(new Error('stopping'));

    expect(await running).toEqual({ kind: 'done' });
    expect(lines.filter((line) => line.level === 'error')).toEqual([]);
  });

  test('gets a logger that names controller, key and an id of its own', async () => {
    const { run, lines } = workerOf((_key, _signal, log) => {
      log.info({}, 'created VM');
      return Promise.resolve(stop);
    });

    await run();
    await run();

    const [first, , second] = lines;
    expect(first?.fields).toMatchObject({ controller: 'machine', key: 'ns/m-1' });
    expect(first?.fields.reconcileID).toMatch(/^[0-9a-f-]{36}$/);
    expect(first?.fields.reconcileID).not.toBe(second?.fields.reconcileID);
  });

  test('that throws before it returns a promise is a failure like any other', async () => {
    const { run } = workerOf(() => {
      throw new Error('at once');
    });

    expect(await run()).toEqual({ kind: 'retry' });
  });
});
