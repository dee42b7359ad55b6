import { afterAll } from '@jest/globals';

import { describeContract } from '../drivers/contract.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { Bed } from './bed.ts';
import { clear } from './leftovers.ts';
import { openStackClass, secretOf } from './requests.ts';

const bed = await Bed.start();

afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});

describeContract({
  name: 'openstack',
  machineClass: openStackClass(bed),
  brokenClass: openStackClass(bed, { rootDiskSize: 'big' }),
  leftOut: [
    'creation',
    'old-token',
    'list-in-pages',
    'old-token-of-a-creation',
    'highest-token-is-told',
    'tokens-of-another-cluster',
    'no-leader-election',
  ],
  notApplicable: ['untagged-vm'],
  userData: '#cloud-config',
  secret: secretOf(bed),
  brokenSecret: secretOf(bed, { password: 'not-the-password' }),
  timeoutMs: 60_000,
  start: async (directory, socket) =>
    await DriverProcess.start('openstack-driver', [`--address=unix://${socket}`, `--state-directory=${directory}`]),
  cleanUp: async () => {
    await clear(bed);
  },
});
