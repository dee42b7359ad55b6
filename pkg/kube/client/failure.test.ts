import { describe, expect, test } from '@jest/globals';

import { errorOfAnswer, errorOfFailure, isConnectionFailure, isUntrustedServer } from './failure.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const status = (body: object): string => JSON.stringify({ kind: 'Status', status: 'Failure', ...body });

describe('errorOfAnswer', () => {
  test.each([
    { code: 404, text: status({ reason: 'NotFound', code: 404, message: 'gone' }), reason: 'NotFound' },
    { code: 404, text: '404 page not found', reason: 'NotServed' },
    { code: 404, text: '{"error":"no such route"}', reason: 'NotServed' },
    { code: 409, text: status({ reason: 'AlreadyExists', code: 409 }), reason: 'AlreadyExists' },
    { code: 409, text: status({ reason: 'Conflict', code: 409 }), reason: 'Conflict' },
    { code: 410, text: status({ reason: 'Expired', code: 410 }), reason: 'Expired' },
    { code: 500, text: status({ code: 500, message: 'bare' }), reason: 'InternalError' },
    { code: 429, text: 'Too many requests, please try again later.', reason: 'TooManyRequests' },
    { code: 502, text: '<html>bad gateway</html>', reason: 'ServiceUnavailable' },
    { code: 503, text: '{"kind":"Status","rea', reason: 'ServiceUnavailable' },
    { code: 418, text: '', reason: 'Unknown' },
  ])('$code with "$text" is $reason', ({ code, text, reason }) => {
    expect(errorOfAnswer(code, undefined, text, NOW)).toMatchObject({ code, reason });
  });

  test.each([
    { header: '3', details: {}, want: 3_000 },
    { header: 'Thu, 01 Jan 2026 00:00:10 GMT', details: {}, want: 10_000 },
    { header: 'Wed, 31 Dec 2025 00:00:00 GMT', details: {}, want: 0 },
    { header: 'soon', details: {}, want: undefined },
    { header: undefined, details: { retryAfterSeconds: 2 }, want: 2_000 },
    { header: '1', details: { retryAfterSeconds: 2 }, want: 1_000 },
    { header: 'Infinity', details: { retryAfterSeconds: 2 }, want: 2_000 },
    { header: 'garbage 1', details: { retryAfterSeconds: 2 }, want: 2_000 },
    { header: undefined, details: {}, want: undefined },
  ])('Retry-After "$header" with $details asks for $want ms', ({ header, details, want }) => {
    const text = status({ reason: 'TooManyRequests', code: 429, details });

    expect(errorOfAnswer(429, header, text, NOW).retryAfterMs).toBe(want);
  });
});

describe('isConnectionFailure', () => {
  test.each([
    { code: 'ECONNREFUSED', want: true },
    { code: 'ECONNRESET', want: true },
    { code: 'UND_ERR_SOCKET', want: true },
    { code: 'UND_ERR_BODY_TIMEOUT', want: false },
    { code: 23, want: false },
    { code: undefined, want: false },
  ])('$code: $want', ({ code, want }) => {
    const cause = Object.assign(new Error('broken'), { code });

    expect(isConnectionFailure(errorOfFailure(cause, 'GET /'))).toBe(want);
    expect(isConnectionFailure(cause)).toBe(want);
  });
});

test.each([
  { code: 'SELF_SIGNED_CERT_IN_CHAIN', isUntrusted: true },
  { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', isUntrusted: true },
  { code: 'ECONNRESET', isUntrusted: false },
])('a connection that ended with $code is to a server that we do not trust: $isUntrusted', ({ code, isUntrusted }) => {
  expect(isUntrustedServer(Object.assign(new Error('x'), { code }))).toBe(isUntrusted);
});
