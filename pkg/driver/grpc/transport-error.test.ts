import { describe, expect, test } from '@jest/globals';
import { ClientError, Status } from 'nice-grpc';

import { unansweredError } from './transport-error.ts';

const never = new AbortController().signal;
const end = { method: 'CreateMachine', mutation: true, signal: never, timedOut: false, timeoutMs: 5_000 };

describe('a call without an answer', () => {
  test.each([
    Status.CANCELLED,
    Status.UNAVAILABLE,
    Status.DEADLINE_EXCEEDED,
    Status.NOT_FOUND,
    Status.RESOURCE_EXHAUSTED,
    Status.INTERNAL,
    Status.UNKNOWN,
  ])('is Unavailable with gRPC status %d, and a mutation may have happened', (status) => {
    const err = unansweredError(new ClientError('/x', status, 'detail'), end);

    expect(err).toMatchObject({ code: 'Unavailable', unanswered: true });
    expect(err.detail).toContain('detail');
  });

  test.each([
    { note: '', want: 'connect ECONNREFUSED /x/sim.sock' },
    { note: 'no such name', want: 'connect ECONNREFUSED /x/sim.sock. Resolution note: no such name' },
  ])('is told without the end of a sentence that says nothing: "$note"', ({ note, want }) => {
    const details = `No connection established. Last error: Error: connect ECONNREFUSED /x/sim.sock. Resolution note: ${note}`;

    const { detail } = unansweredError(new ClientError('/x', Status.UNAVAILABLE, details), end);

    expect(detail).toBe(
      `CreateMachine was not answered: UNAVAILABLE: No connection established. Last error: Error: ${want}`,
    );
  });

  test('is Unimplemented, and certainly did not happen, when there is no such method', () => {
    const err = unansweredError(new ClientError('/x', Status.UNIMPLEMENTED, 'no'), end);

    expect(err).toMatchObject({ code: 'Unimplemented', unanswered: false });
  });

  test('is no reason to doubt a read', () => {
    const err = unansweredError(new ClientError('/x', Status.UNAVAILABLE, 'no'), { ...end, mutation: false });

    expect(err).toMatchObject({ code: 'Unavailable', unanswered: false });
  });

  test('is Canceled when the caller gave it up', () => {
    const signal = AbortSignal.abort(new Error('machine is being deleted'));

    const err = unansweredError(new ClientError('/x', Status.CANCELLED, ''), { ...end, signal });

    expect(err).toMatchObject({ code: 'Canceled', unanswered: true });
    expect(err.detail).toContain('machine is being deleted');
  });

  test('is Unavailable when its time was over', () => {
    expect(unansweredError(new Error('aborted'), { ...end, timedOut: true })).toMatchObject({
      code: 'Unavailable',
      detail: 'CreateMachine was not answered in 5000 ms',
      unanswered: true,
    });
  });
});
