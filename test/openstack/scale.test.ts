import { afterAll } from '@jest/globals';

import { Bed } from './bed.ts';
import { describeScale } from './scale.ts';

const bed = await Bed.start();

afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});

describeScale(bed, 50);
