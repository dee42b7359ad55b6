import { repeatsSecrets } from '../../without-secrets.ts';
import { CallTimeout, NoAnswer } from '../conversation.ts';
import type { Rules } from '../rule.ts';
import { Violation } from '../violation.ts';

/** A time that no creation at a provider takes. */
const SHORT_MS = 20;

/** How long a call takes, and what is never said. */
export const BOUNDS: Rules = {
  'time-of-a-creation': {
    sentence: 'The driver gives up when the call is cancelled or its timeout has passed.',
    requires: ['idempotent_create'],
    async run(scene, machine) {
      await inTime(scene.create(machine, { timeoutMs: SHORT_MS }));

      const { providerId } = await scene.made(machine);
      await scene.requireOnly(machine, providerId);
    },
  },
  'time-of-a-read': {
    sentence: 'The driver gives up when the call is cancelled or its timeout has passed.',
    async run(scene) {
      await inTime(scene.status(scene.machine('a'), { timeoutMs: SHORT_MS }));
    },
  },
  'time-of-a-deletion': {
    sentence: 'What it had begun at the provider by then is found by the next call.',
    async run(scene, machine) {
      await scene.made(machine);
      await inTime(scene.delete(machine, { timeoutMs: SHORT_MS }));

      await scene.deleted(machine);
    },
  },
};

/** Last of all: of everything that the driver has said to the others, too. */
export const SECRETS: Rules = {
  secrets: {
    sentence: "The provider's own words, for users. No secrets.",
    async run({ talk, options: { secretData, badSecretData = {} } }) {
      await Promise.resolve();
      const told = talk.heard.find((text) => [secretData, badSecretData].some((data) => repeatsSecrets(text, data)));
      // Not the text itself: the report is passed on.
      if (told !== undefined)
        throw new Violation(
          `an answer of ${told.length} characters contains a value of the Secret, in plain text, encoded, or as numbers`,
          'no value of the Secret in any answer',
        );
    },
  },
};

/** Any end of a call will do, if it comes in time. */
async function inTime(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (err) {
    if (err instanceof CallTimeout || !(err instanceof NoAnswer)) throw err;
  }
}
