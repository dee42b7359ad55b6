import { describe, expect, test } from '@jest/globals';

import { GateClosedError } from '../kube/gate/gate.ts';
import { ApiError } from '../kube/client/errors.ts';
import { answerIn } from './pod-actions.ts';

const budgetStatus = { details: { causes: [{ reason: 'DisruptionBudget', message: 'needs 3' }] } };

describe('verdictOf', () => {
  test.each([
    { what: 'NotFound', err: new ApiError(404, 'NotFound', 'm'), want: { kind: 'gone' } },
    {
      what: 'a budget that is deleted during an eviction',
      err: new ApiError(404, 'NotFound', 'm', { status: { details: { kind: 'poddisruptionbudgets' } } }),
      want: { kind: 'unclear', message: 'm' },
    },
    {
      what: 'a refusal by a budget',
      err: new ApiError(429, 'TooManyRequests', 'm', { status: budgetStatus }),
      want: { kind: 'refused', message: 'm' },
    },
    {
      what: 'a 429 of an overloaded server',
      err: new ApiError(429, 'TooManyRequests', 'm', { retryAfterMs: 1_000 }),
      want: { kind: 'failed', message: 'm', retryAfterMs: 1_000 },
    },
    { what: 'a conflict', err: new ApiError(409, 'Conflict', 'm'), want: { kind: 'unclear', message: 'm' } },
    { what: 'no answer', err: new ApiError(0, 'Unreachable', 'm'), want: { kind: 'failed', message: 'm' } },
    {
      what: 'two budgets on one pod',
      err: new ApiError(500, 'InternalError', 'm'),
      want: { kind: 'failed', message: 'm' },
    },
    {
      what: 'a terminating namespace',
      err: new ApiError(403, 'Forbidden', 'm'),
      want: { kind: 'failed', message: 'm' },
    },
    {
      what: 'a gate closed by an outage',
      err: new GateClosedError('outage', 'target', 'm'),
      want: { kind: 'failed', message: 'm' },
    },
  ])('$what becomes $want.kind', ({ err, want }) => {
    expect(answerIn(err)).toEqual(want);
  });

  test('a closed fence ends the drain, which begins anew when leadership is resumed', () => {
    const err = new GateClosedError('fenced', undefined, 'm');

    expect(() => answerIn(err)).toThrow(err);
  });

  test('departure: only NotFound means that a pod is gone', () => {
    const others = [
      'Gone',
      'Expired',
      'Unreachable',
      'DeadlineExceeded',
      'Conflict',
      'Forbidden',
      'Unauthorized',
    ] as const;

    expect(others.filter((reason) => answerIn(new ApiError(410, reason, 'm')).kind === 'gone')).toEqual([]);
  });

  test('passes a bug on', () => {
    expect(() => answerIn(new TypeError('bug'))).toThrow(TypeError);
  });
});
