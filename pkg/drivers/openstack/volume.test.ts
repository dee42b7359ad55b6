import { expect, test } from '@jest/globals';

import { volumeErrorOf, volumeStateOf } from './volume.ts';

test.each([
  { status: 'available', state: 'usable' },
  { status: 'deleting', state: 'going' },
  { status: 'error_deleting', state: 'stuck' },
  { status: 'error', state: 'failed' },
  { status: 'error_extending', state: 'failed' },
  { status: 'creating', state: 'busy' },
  { status: 'downloading', state: 'busy' },
  { status: 'in-use', state: 'busy' },
  { status: 'reserved', state: 'busy' },
  { status: 'a status of later', state: 'busy' },
])('a volume in status $status is $state', ({ status, state }) => {
  expect(volumeStateOf(status)).toBe(state);
});

test.each([
  {
    status: 413,
    says: 'Requested volume exceeds allowed gigabytes quota.',
    code: 'ResourceExhausted',
    at: 'rootDiskSize',
  },
  { status: 404, says: 'Volume type with name x could not be found.', code: 'InvalidArgument', at: 'rootDiskType' },
  { status: 400, says: "Availability zone 'x' is invalid.", code: 'InvalidArgument', at: 'availabilityZone' },
  { status: 400, says: 'Volume size 3 cannot be smaller than 5', code: 'InvalidArgument', at: 'rootDiskSize' },
  { status: 400, says: 'Invalid image identifier', code: 'InvalidArgument', at: 'imageID, imageName' },
])('Cinder that answers $status "$says" means $at', ({ status, says, code, at }) => {
  const error = volumeErrorOf({ status, headers: {}, body: { badRequest: { message: says } } });

  expect(error.code).toBe(code);
  expect(error.detail).toMatch(
    new RegExp(`^providerSpec\\.spec\\.${at}: creating the root disk: ${status} ${says}; \\S`),
  );
});

test('Cinder that answers something else is told as it is', () => {
  const error = volumeErrorOf({ status: 503, headers: {}, body: 'busy' });

  expect([error.code, error.detail]).toEqual(['Unavailable', 'creating the root disk: 503 busy']);
});
