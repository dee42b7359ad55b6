import { expect, test } from '@jest/globals';

import { driverCodeOf, codeOfFault, errorOf, retryAfterMsOf, errorTextOf } from './answer.ts';

const nova = (name: string, message: string) => ({ [name]: { code: 0, message } });
const neutron = (type: string, message = 'words') => ({ NeutronError: { type, message, detail: '' } });

test.each([
  { status: 400, body: nova('badRequest', 'Flavor nope could not be found.'), code: 'InvalidArgument' },
  {
    status: 401,
    body: { error: { message: 'The request you have made requires authentication.' } },
    code: 'Unauthenticated',
  },
  { status: 401, body: '<html>Authentication required</html>', code: 'Unauthenticated' },
  { status: 403, body: nova('forbidden', 'Quota exceeded for instances: Requested 1'), code: 'ResourceExhausted' },
  { status: 403, body: nova('forbidden', 'Maximum number of metadata items exceeds 128'), code: 'ResourceExhausted' },
  { status: 403, body: nova('forbidden', "Policy doesn't allow x to be performed."), code: 'PermissionDenied' },
  { status: 404, body: nova('itemNotFound', 'x'), code: 'InvalidArgument' },
  { status: 406, body: 'x', code: 'InvalidArgument' },
  { status: 409, body: neutron('OverQuota'), code: 'ResourceExhausted' },
  { status: 409, body: neutron('IpAddressGenerationFailure'), code: 'ResourceExhausted' },
  { status: 409, body: nova('conflictingRequest', 'Port x is still in use.'), code: 'Aborted' },
  ...['AddressPairAndPortSecurityRequired', 'PortSecurityPortHasSecurityGroup', 'IpAddressAlreadyAllocated'].map(
    (type) => ({ status: 409, body: neutron(type), code: 'FailedPrecondition' }),
  ),
  ...[
    'AddressPairMatches',
    'MacAddressInUse',
    'PortInUseAsTrunkParent',
    'IpAddressGenerationFailureNoMatchingSubnet',
  ].map((type) => ({
    status: 409,
    body: neutron(type),
    code: 'FailedPrecondition',
  })),
  { status: 409, body: neutron('FloatingIPPortAlreadyAssociated'), code: 'Aborted' },
  { status: 409, body: nova('conflictingRequest', 'Instance x is locked'), code: 'FailedPrecondition' },
  { status: 409, body: nova('conflictingRequest', 'Instance x is blocked'), code: 'Aborted' },
  { status: 413, body: nova('overLimit', 'x'), code: 'ResourceExhausted' },
  { status: 429, body: '', code: 'Unavailable' },
  { status: 500, body: nova('computeFault', 'ConnectFailure'), code: 'Unavailable' },
  { status: 503, body: '', code: 'Unavailable' },
  { status: 302, body: '', code: 'Internal' },
])('$status with $body is $code', ({ status, body, code }) => {
  const { type, words } = errorTextOf(body);

  expect(driverCodeOf(status, type, words)).toBe(code);
});

test.each([
  { words: 'No valid host was found. ', code: 'ResourceExhausted' },
  { words: 'No valid host was found. There are not enough hosts available.', code: 'ResourceExhausted' },
  { words: 'Build of instance x aborted: the host is broken', code: 'Internal' },
  {
    words:
      'VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 501G',
    code: 'ResourceExhausted',
  },
  {
    words: "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'.",
    code: 'ResourceExhausted',
  },
  { words: 'Could not find any available weighted backend.', code: 'ResourceExhausted' },
  { words: '', code: 'Internal' },
])('a build that failed with "$words" is $code', ({ words, code }) => {
  expect(codeOfFault(words)).toBe(code);
});

test('the words of a service are told, without markup, on one line and cut', () => {
  const long = nova('badRequest', `Invalid\n input: ${'A'.repeat(70_000)}`);

  expect(errorOf({ status: 400, headers: {}, body: long }, 'creating the server').detail).toMatch(
    /^creating the server: 400 Invalid input: A{100}[^]{0,400}$/,
  );
  expect(errorOf({ status: 503, headers: {}, body: '<h1>503</h1> busy' }, 'x').detail).toBe('x: 503 503 busy');
});

test.each([
  { headers: { 'retry-after': '7' }, ms: 7_000 },
  { headers: { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT', date: 'Sun, 06 Nov 1994 08:49:30 GMT' }, ms: 7_000 },
  { headers: { 'retry-after': 'soon' }, ms: undefined },
  { headers: {}, ms: undefined },
])('a service asks to come back in $ms ms', ({ headers, ms }) => {
  expect(retryAfterMsOf({ headers })).toBe(ms);
  expect(errorOf({ status: 429, headers, body: '' }, 'x').retryAfterMs).toBe(ms);
});
