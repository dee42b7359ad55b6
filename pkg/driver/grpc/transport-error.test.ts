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
    { why: 'connect ECONNREFUSED /x/sim.sock', note: '', want: 'connection refused' },
    { why: 'connect ECONNREFUSED 127.0.0.1:9', note: 'no such name', want: 'connection refused; no such name' },
    { why: 'connect ENOENT /x/sim.sock', note: '', want: 'no such socket' },
    { why: 'connect EACCES /x/sim.sock', note: '', want: 'permission denied' },
    { why: 'self-signed certificate', note: '', want: 'self-signed certificate' },
    {
      why: "Hostname/IP does not match certificate's altnames",
      note: '',
      want: "Hostname/IP does not match certificate's altnames",
    },
  ])('is told in the words of people: $want', ({ why, note, want }) => {
    const details = `No connection established. Last error: Error: ${why}. Resolution note: ${note}`;

    const { detail } = unansweredError(new ClientError('/x', Status.UNAVAILABLE, details), end);

    expect(detail).toBe(`CreateMachine was not answered: ${want}`);
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
      detail: 'CreateMachine was not answered within 5000 ms',
      unanswered: true,
    });
  });
});
