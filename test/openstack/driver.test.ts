import { afterAll } from '@jest/globals';

import { Bed } from './bed.ts';
import { describeLostAnswers } from './lost-answers.ts';
import { describeMachines } from './machines.ts';
import { describeOutages } from './outages.ts';
import { describeRefusals } from './refusals.ts';
import { describeScale } from './scale.ts';

const bed = await Bed.start();

afterAll(async () => {
  await bed[Symbol.asyncDispose]();
});

describeMachines(bed);
describeRefusals(bed);
describeOutages(bed);
describeLostAnswers(bed);
describeScale(bed);
