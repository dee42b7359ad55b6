import { expect, test } from '@jest/globals';

import { requeue, stop, type StepResult } from '../result.ts';
import { PassNotes } from './pass-notes.ts';
import { runPass } from './run-pass.ts';

/** A pass whose parts note that they ran; the one that is named fails. */
async function passWith(fails: 'run' | 'write' | 'afterwards' | undefined, result: StepResult = stop) {
  const ran: string[] = [];
  const notes = new PassNotes<never>();
  const part = async (name: string): Promise<StepResult> => {
    await Promise.resolve();
    ran.push(name);
    if (fails === name) throw new Error(name);
    return result;
  };
  notes.alsoAfter(50, 'a deadline');
  notes.afterwards(async () => void (await part('afterwards')));
  notes.hold({ [Symbol.dispose]: () => void ran.push('released') });
  const [ended] = await Promise.allSettled([
    runPass(
      notes,
      () => part('run'),
      async () => void (await part('write')),
    ),
  ]);
  return { ran, ended: ended.status === 'fulfilled' ? ended.value : String(ended.reason) };
}

test.each([
  { fails: undefined, ran: ['run', 'write', 'afterwards', 'released'], ended: { kind: 'requeue', afterMs: 50 } },
  { fails: 'run', ran: ['run', 'write', 'afterwards', 'released'], ended: 'Error: run' },
  { fails: 'write', ran: ['run', 'write', 'released'], ended: 'Error: write' },
  { fails: 'afterwards', ran: ['run', 'write', 'afterwards', 'released'], ended: 'Error: afterwards' },
] as const)('when $fails fails, $ran have run', async ({ fails, ran, ended }) => {
  expect(await passWith(fails)).toMatchObject({ ran, ended });
});

test('the sooner of its requeue and a noted timer counts', async () => {
  expect(await passWith(undefined, requeue(20, 'x'))).toMatchObject({ ended: { kind: 'requeue', afterMs: 20 } });
});
