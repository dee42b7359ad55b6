import { expect, test } from '@jest/globals';

import { ApiError } from '../kube/client/errors.ts';
import { driverFailure } from './api-failure.ts';

test.each([
  { http: 401, reason: 'Unauthorized', code: 'Unauthenticated' },
  { http: 403, reason: 'Forbidden', code: 'PermissionDenied' },
  { http: 422, reason: 'Invalid', code: 'InvalidArgument' },
  { http: 400, reason: 'BadRequest', code: 'InvalidArgument' },
  { http: 409, reason: 'Conflict', code: 'Aborted' },
  { http: 410, reason: 'Expired', code: 'Aborted' },
  { http: 429, reason: 'TooManyRequests', code: 'Unavailable' },
  { http: 503, reason: 'ServiceUnavailable', code: 'Unavailable' },
  { http: 0, reason: 'Unreachable', code: 'Unavailable' },
  { http: 0, reason: 'DeadlineExceeded', code: 'Unavailable' },
  // No word about a Node: a gateway's own page. NotFound would say that the VM has gone.
  { http: 404, reason: 'NotServed', code: 'Unavailable' },
  { http: 404, reason: 'NotFound', code: 'Unavailable' },
])('$reason of the API server is $code, in its own words', ({ http, reason, code }) => {
  const failure = driverFailure(new ApiError(http, reason, 'no', { retryAfterMs: 7_000 }));

  expect(failure).toMatchObject({ code, detail: 'no', retryAfterMs: 7_000 });
});

test('what is no answer of the API server stays what it is', () => {
  const aborted = new Error('aborted');

  expect(driverFailure(aborted)).toBe(aborted);
});
