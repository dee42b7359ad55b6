import { expect, test } from '@jest/globals';

import { ApiError } from '../kube/client/errors.ts';
import { OPTIONAL_FIRST_MS, pauseAfter } from './optional-pause.ts';

test.each([
  { what: 'a refusal', err: new ApiError(403, 'Forbidden', 'no'), before: OPTIONAL_FIRST_MS, want: 4_000 },
  { what: 'a kind that is not served', err: new ApiError(404, 'NotServed', 'no'), before: 200_000, want: 300_000 },
  {
    what: 'no answer',
    err: new ApiError(0, 'Unreachable', 'down'),
    before: OPTIONAL_FIRST_MS,
    want: OPTIONAL_FIRST_MS,
  },
  {
    what: 'an error of the server',
    err: new ApiError(500, 'InternalError', 'x'),
    before: 64_000,
    want: OPTIONAL_FIRST_MS,
  },
])('after $what and a pause of $before ms an optional kind is asked for in $want ms', ({ err, before, want }) => {
  expect(pauseAfter(err, before)).toBe(want);
});
