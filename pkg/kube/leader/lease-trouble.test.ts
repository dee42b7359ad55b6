import { describe, expect, test } from '@jest/globals';

import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ApiError } from '../client/errors.ts';
import { silentLogger, type LogFields } from '../../base/log/logger.ts';
import { LeaseTrouble } from './lease-trouble.ts';

const ATTEMPT_MS = 7_000;

function start() {
  const clock = new FakeClock();
  const told: { level: string; fields: LogFields; message: string }[] = [];
  const tell = (level: string) => (fields: LogFields, message: string) => void told.push({ level, fields, message });
  const log = { ...silentLogger, warn: tell('warn'), info: tell('info') };
  const trouble = new LeaseTrouble('machine-controller', { clock, log });
  /** Attempts that end, without an answer, ATTEMPT_MS after their beginning. */
  const fail = (times: number): void => {
    for (let i = 0; i < times; i++) {
      const startedMs = clock.monotonicMs();
      clock.advance(ATTEMPT_MS);
      trouble.failed(new Error(`attempt ${i + 1}`), startedMs);
    }
  };
  return { clock, told, trouble, fail };
}

describe('a Lease that cannot be reached', () => {
  test('is told at the third failure, and from then on at each tenth, with how long it has lasted', () => {
    const { told, fail } = start();

    fail(25);

    const since = '2026-01-01T00:00:00Z';
    expect(told).toMatchObject(
      [3, 10, 20].map((failures) => ({
        level: 'warn',
        fields: { lease: 'machine-controller', failures, since, ms: failures * ATTEMPT_MS },
        message: 'could not read or acquire the Lease',
      })),
    );
  });

  test('is shown since the beginning of the first attempt, with the last error', () => {
    const { clock, trouble, fail } = start();
    clock.advance(60_000);

    fail(2);

    expect(trouble.current).toEqual({ sinceMs: Date.UTC(2026, 0, 1, 0, 1), why: 'attempt 2' });
  });

  test('because its namespace is being deleted names the ways out', () => {
    const { trouble } = start();
    const causes = [{ reason: 'NamespaceTerminating', message: 'namespace machinist is being terminated' }];
    const message = 'leases.coordination.k8s.io "machine-controller" is forbidden: because it is being terminated';

    trouble.failed(new ApiError(403, 'Forbidden', message, { status: { details: { causes } } }), 0);

    expect(trouble.current?.why).toContain(`${message}. `);
    expect(trouble.current?.why).toContain('docs/operations/rbac.md#a-namespace-stays-terminating');
    expect(trouble.current?.why).toContain('--leader-elect-resource-namespace');
  });

  test('is told to be over, once', () => {
    const { told, trouble, fail } = start();
    fail(4);
    told.length = 0;

    trouble.answered();
    trouble.answered();

    expect(trouble.current).toBeUndefined();
    expect(told).toMatchObject([
      { level: 'info', fields: { failures: 4, ms: 4 * ATTEMPT_MS }, message: 'the Lease is reachable again' },
    ]);
  });

  test('is not worth a word when it was a blink', () => {
    const { told, trouble, fail } = start();

    fail(2);
    trouble.answered();
    fail(2);

    expect(told).toEqual([]);
  });
});
