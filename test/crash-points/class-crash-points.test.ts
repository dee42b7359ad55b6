import { describe, jest, test } from '@jest/globals';

import { correctClassAt, type Failure, switchClassAt } from './class-life.ts';
import { hitEach, type Live, sampleOf } from './rows.ts';

/*
 * The MachineClass changes under a machine that is being created, in a simulated world: the process dies at one of its mutations, loses its
 * answer, or stands still. Real servers are shown a few of these lives: test/faults/class-crash-points.test.ts.
 */
// Seconds of the processor, which a busy host takes long to give: a life is bounded by its own time.
jest.setTimeout(900_000);

/** Of some 40, of some 30, and of some 160. */
const [SWITCHES, REPEATED, CORRECTIONS] = [10, 6, 10];

describe('a process that dies, stands still or loses an answer at one of its mutations', () => {
  test.each([{ when: 'before' }, { when: 'after' }] as const)(
    'makes one VM for a machine whose class is switched just $when it, and the class of the VM stays',
    async ({ when }) => {
      const live: Live = (n, fate) => switchClassAt(n, fate, { when, idempotentCreate: false });

      await hitEach(live, await sampleOf(`simulated switches of a class just ${when}`, live, SWITCHES), { least: 1 });
    },
  );

  test('leaves no VM in the account of the former class where a creation may be repeated', async () => {
    const live: Live = (n, fate) => switchClassAt(n, fate, { when: 'after', idempotentCreate: true });
    const rows = await sampleOf('simulated switches of a class that repeats creations', live, REPEATED);

    // What was asked for and not recorded is found, and deleted, by the list of the former class.
    await hitEach(live, rows, { least: 1, most: 2 });
  });

  test('records the VM of a call that is under way when its class is switched', async () => {
    const live: Live = (n, fate) => switchClassAt(n, fate, { when: 'after', idempotentCreate: true });
    const { mutations } = await live(0, 'lost');
    const n = mutations.findIndex((mutation) => mutation.startsWith('CreateMachine')) + 1;

    await hitEach(live, [{ n, fate: 'lost', mutation: 'CreateMachine' }], { least: 1 });
  });

  test.each<{ readonly what: string; readonly failure: Failure }>([
    { what: 'cannot be made', failure: { code: 'InvalidArgument', message: 'no such size', terminal: true } },
    { what: 'has no room', failure: { code: 'ResourceExhausted', message: 'no room', retryAfterMs: 600_000 } },
  ])(
    'makes the machines of a class soon that was corrected while its provider was about to say that it $what',
    async ({ what, failure }) => {
      const live: Live = (n, fate) => correctClassAt(n, fate, failure);

      await hitEach(live, await sampleOf(`simulated corrections of a class: it ${what}`, live, CORRECTIONS), {
        least: 2,
      });
    },
  );
});
