import { expect, test } from '@jest/globals';

import { diskLabel, volumeErrorOf, volumeStateOf } from './volume.ts';

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

const ROOT = { description: 'machinist uid=u', members: { size: 'rootDiskSize', type: 'rootDiskType' } };
const DATA = {
  description: 'machinist uid=u disk=logs',
  members: { size: 'dataVolumes[1].size', type: 'dataVolumes[1].type' },
};

test.each([
  { description: null, label: 'the root disk' },
  { description: ROOT.description, label: 'the root disk' },
  { description: DATA.description, label: 'data volume logs' },
])('a volume described as $description is called $label', ({ description, label }) => {
  expect(diskLabel({ description })).toBe(label);
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
  const error = volumeErrorOf({ status, headers: {}, body: { badRequest: { message: says } } }, ROOT);

  expect(error.code).toBe(code);
  expect(error.detail).toMatch(
    new RegExp(`^providerSpec\\.spec\\.${at}: creating the root disk: ${status} ${says}; \\S`),
  );
});

test('a data volume that Cinder does not make is named with its member of the class', () => {
  const refused = (status: number, message: string): string =>
    volumeErrorOf({ status, headers: {}, body: { badRequest: { message } } }, DATA).detail;

  expect(refused(413, 'quota')).toMatch(/^providerSpec\.spec\.dataVolumes\[1\]\.size: creating data volume logs: 413/);
  expect(refused(404, 'Volume type x')).toMatch(/^providerSpec\.spec\.dataVolumes\[1\]\.type: /);
});

test('Cinder that answers something else is told as it is', () => {
  const error = volumeErrorOf({ status: 503, headers: {}, body: 'busy' }, ROOT);

  expect([error.code, error.detail]).toEqual(['Unavailable', 'creating the root disk: 503 busy']);
});
