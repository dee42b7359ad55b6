import { afterAll, beforeAll } from '@jest/globals';

import { Bed } from './bed.ts';
import { describeManager } from './manager.ts';
import { describeVolumes } from './volumes.ts';

/** A cloud of its own beside that of driver.test.ts, which would take as long as all other tests together. */
const bed = await Bed.start();

beforeAll(async () => {
  await bed.revive('cinder');
}, 240_000);

afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});

describeVolumes(bed);
describeManager(bed);
