import { afterAll } from '@jest/globals';

import { describeContract } from '../drivers/contract.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { Bed } from './bed.ts';
import { describeConnections } from './connections.ts';
import { clear } from './leftovers.ts';
import { describeLostAnswers } from './lost-answers.ts';
import { describeMachines } from './machines.ts';
import { describeOutages } from './outages.ts';
import { describeRefusals } from './refusals.ts';
import { openStackClass, secretOf } from './requests.ts';
import { describeScale } from './scale.ts';
import { sampledRules } from './rules.ts';

/** All that needs no Cinder on one cloud: to start it takes as much as a dozen machines. */
const bed = await Bed.start();

afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});

describeContract({
  name: 'openstack',
  machineClass: openStackClass(bed),
  brokenClass: openStackClass(bed, { rootDiskSize: 'big' }),
  only: sampledRules(),
  notApplicable: [],
  userData: '#cloud-config',
  secret: secretOf(bed),
  brokenSecret: secretOf(bed, { password: 'not-the-password' }),
  timeoutMs: 120_000,
  start: async (directory, socket) =>
    await DriverProcess.start('openstack-driver', [`--address=unix://${socket}`, `--state-directory=${directory}`]),
  cleanUp: async () => {
    await clear(bed);
  },
});
describeMachines(bed);
describeRefusals(bed);
describeConnections(bed);
describeLostAnswers(bed);
describeScale(bed, 3);
describeOutages(bed);
