import type { Rules } from '../rule.ts';
import type { Scene } from '../scene.ts';
import { Violation } from '../violation.ts';
import { requireRefused } from './fencing.ts';

/** What outlives the driver. */
export const RESTART: Rules = {
  restart: {
    sentence:
      'The manager decides which machines should exist; the driver only does what it is asked, for one machine at a time, and remembers nothing that the provider does not remember.',
    requires: ['--restart-command'],
    async run(scene, machine) {
      const { providerId } = await scene.made(machine);

      await restart(scene);

      const again = await scene.made(machine);
      if (again.providerId !== providerId)
        throw new Violation(
          `after a restart, CreateMachine returned ${again.providerId}`,
          `the VM from before the restart, ${providerId}`,
        );
      await scene.requireOnly(machine, providerId);
    },
  },
  'restart-during-a-creation': {
    sentence:
      'A call may be repeated at any time: after a lost answer, after a restart of either side, by a new leader while the call of the old one still runs.',
    requires: ['--restart-command', 'idempotent_create'],
    async run(scene, machine) {
      const lost = scene.create(machine).catch(() => undefined);
      await restart(scene);
      await lost;

      const { providerId } = await scene.made(machine);
      await scene.requireOnly(machine, providerId);
    },
  },
  'restart-keeps-tokens': {
    sentence:
      'What is remembered protects only where every manager asks the same driver, or several drivers share what they remember, and where it outlives a restart of the driver.',
    requires: ['--restart-command'],
    async run(scene, machine) {
      await scene.made(machine, { token: 7n });

      await restart(scene);

      await requireRefused(scene, machine);
    },
  },
};

/** Pause between two attempts to reach a driver that is being started. */
const AGAIN_MS = 100;

/** Resolves when the driver answers again. Throws Violation where it has never ended: then nothing was outlived. */
async function restart({ options, talk, signal }: Scene): Promise<void> {
  await talk.capabilities(signal);
  const isLost = talk.watch();
  await options.restart?.(signal);
  for (;;) {
    try {
      await talk.capabilities(signal);
      break;
    } catch (err) {
      if (!(err instanceof Violation) || signal.aborted) {
        throw new Violation('the driver did not respond after --restart-command', 'the driver to serve again', {
          cause: err,
        });
      }
    }
    await options.clock.sleep(AGAIN_MS, signal);
  }
  if (!isLost())
    throw new Violation(
      '--restart-command did not stop the driver: its connection was never lost',
      'the command to restart the driver',
    );
}
