import { describe, jest, test } from '@jest/globals';

import {
  ABORTED_DELETION,
  endMachine,
  FORCED_DELETION,
  MAINTENANCE_AND_BACK,
  PREPARED_DELETION,
  REMOVAL_BY_FORCE,
} from './machine-life.ts';
import { hitEach, type Live, sampleOf } from './rows.ts';

/*
 * What is done to a machine on which pods run, in a simulated world: the process dies at one of its mutations, loses its answer, or stands
 * still. Real servers are shown a few of these lives: test/faults/drain-crash-points.test.ts.
 */
// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(900_000);

/** Of some 40 to 90. */
const LIVES = 10;

describe('a process that dies, stands still or loses an answer at one of its mutations', () => {
  test.each([
    { what: 'leaves nothing of a deletion by force', plan: FORCED_DELETION },
    { what: 'ends a maintenance that was begun, and gives the Node back as it was', plan: MAINTENANCE_AND_BACK },
    { what: 'lets a machine go by force once its class notes that', plan: REMOVAL_BY_FORCE },
    { what: 'ends a prepared deletion that was begun', plan: PREPARED_DELETION },
    { what: 'ends a prepared deletion that is aborted, and takes no pod', plan: ABORTED_DELETION },
  ])('$what', async ({ what, plan }) => {
    const live: Live = (n, fate) => endMachine(plan, n, fate);

    await hitEach(live, await sampleOf(`simulated: ${what}`, live, LIVES), { least: 1 });
  });
});
