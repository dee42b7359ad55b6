import { expect, test } from '@jest/globals';

import { DriverError } from '../../driver/error.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { machine } from '../../../test/builders.ts';
import { describeStage, deletionStageOf } from './deletion-stage.ts';
import { copyOf, setFailure, setOperation } from './status.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const LONG = 'the provider says: '.repeat(5_000);

test.each([
  { whose: 'a driver', error: new DriverError('Internal', LONG) },
  { whose: 'an API server', error: new ApiError(500, 'InternalError', LONG) },
])('the words of $whose are kept short', ({ error }) => {
  expect(error.message.length).toBeLessThan(2_100);
  expect(error.message).toContain('characters omitted');
});

test.each([
  { what: 'an operation', set: setOperation },
  { what: 'a failure', set: setFailure },
])('a long description of $what is stored short, with its marker, and the same again changes nothing', ({ set }) => {
  const copy = copyOf(machine((m) => Object.assign(m.status.currentStatus, { phase: 'Terminating' })));
  const operation = { type: 'Delete', state: 'Failed', description: describeStage('delete-vm', LONG) } as const;
  set(copy, operation, NOW);
  const written = copy.status.lastOperation;

  set(copy, operation, NOW + 1_000);

  expect(written?.description?.length).toBeLessThanOrEqual(2_048);
  expect(deletionStageOf(copy)).toBe('delete-vm');
  expect(copy.status.lastOperation).toBe(written);
});
