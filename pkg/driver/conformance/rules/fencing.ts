import type { Rules } from '../rule.ts';
import type { Scene } from '../scene.ts';
import { codeName, UnexpectedAnswer, Violation } from '../violation.ts';
import type { Subject } from '../conversation.ts';

const [OLD, NEW] = [6n, 7n];
const HIGHEST =
  'For each cluster and namespace a driver remembers the highest token seen and refuses a lower one with FailedPrecondition: it comes from a manager that has been replaced and does not know it yet.';

/** A manager that was replaced is refused. The cluster of each rule is new, so that no token of it was seen before. */
export const FENCING: Rules = {
  'old-token': {
    sentence: HIGHEST,
    async run(scene, machine) {
      await scene.made(machine, { token: NEW });

      await requireRefused(scene, machine);
      await scene.found(machine);
    },
  },
  'old-token-of-a-creation': {
    sentence: 'CreateMachine, InitializeMachine and DeleteMachine carry a fencing token.',
    async run(scene) {
      await scene.made(scene.machine('a'), { token: NEW });
      const machine = scene.machine('b');

      const { failure } = await scene.create(machine, { token: OLD });

      if (failure === undefined || codeName(failure) !== 'FailedPrecondition') {
        throw new UnexpectedAnswer(`CreateMachine with token ${OLD} after ${NEW}`, failure, 'FailedPrecondition');
      }
      await scene.requireNone(machine, 'a machine whose creation was refused');
    },
  },
  'highest-token-is-told': {
    sentence:
      'The refusal returns the highest token in `failure.fencing_token`, so that a manager whose count was set back, because its cluster was restored from a backup, can exceed it.',
    async run(scene, machine) {
      await scene.made(machine, { token: NEW });

      const { failure } = await scene.delete(machine, { token: OLD });

      // That it is refused at all, another rule is about.
      if (failure === undefined || failure.fencingToken === NEW) return;
      throw new Violation(
        `the refusal of token ${OLD} after ${NEW} has failure.fencing_token ${failure.fencingToken}`,
        String(NEW),
      );
    },
  },
  'tokens-of-another-cluster': {
    sentence: HIGHEST,
    async run(scene) {
      await scene.made(scene.machine('a'), { token: NEW });
      const namespace = `${scene.machine('b').namespace}-other`;

      for (const other of [
        scene.machine('b', { cluster: `${scene.cluster}-other` }),
        scene.machine('c', { namespace, machineClass: scene.otherClass({ namespace }) }),
      ]) {
        const { failure } = await scene.create(other, { token: OLD });
        if (failure !== undefined && codeName(failure) === 'FailedPrecondition') {
          throw new Violation(
            `token ${OLD} was refused because of token ${NEW} of another cluster or namespace`,
            'tokens to be compared only within a cluster and namespace',
          );
        }
      }
    },
  },
  'no-leader-election': {
    sentence:
      'Zero comes from a manager that runs without leader election: there is nothing to compare, so it is neither refused nor remembered.',
    async run(scene, machine) {
      await scene.made(machine, { token: NEW });

      const { failure } = await scene.create(machine, { token: 0n });
      if (failure !== undefined && codeName(failure) === 'FailedPrecondition') {
        throw new UnexpectedAnswer(`CreateMachine with token 0 after ${NEW}`, failure, 'token 0 not to be compared');
      }
      const after = await scene.create(machine, { token: NEW });
      if (after.failure !== undefined && codeName(after.failure) === 'FailedPrecondition') {
        throw new UnexpectedAnswer(
          `CreateMachine with token ${NEW} after 0`,
          after.failure,
          'token 0 not to be remembered',
        );
      }
    },
  },
};

/** A deletion by a manager that was replaced is refused. */
export async function requireRefused(scene: Scene, machine: Subject): Promise<void> {
  const { failure } = await scene.delete(machine, { token: OLD });
  if (failure !== undefined && codeName(failure) === 'FailedPrecondition') return;
  throw new UnexpectedAnswer(`DeleteMachine with token ${OLD} after ${NEW}`, failure, 'FailedPrecondition');
}
