import type { Rule } from '../rule.ts';
import type { Scene } from '../scene.ts';
import { answerText, codeOf, Violation } from '../violation.ts';
import type { Subject } from '../conversation.ts';

const [OLD, NEW] = [6n, 7n];

/** A manager that was replaced is refused. The cluster of each rule is new, so that no token of it was seen before. */
export const FENCING: readonly Rule[] = [
  {
    name: 'old-token',
    sentence: 'driver remembers the highest token seen and refuses a lower one with FailedPrecondition:',
    async run(scene) {
      const machine = scene.machine('a');
      await scene.made(machine, { token: NEW });

      await requireRefused(scene, machine);
      await scene.found(machine);
    },
  },
  {
    name: 'old-token-of-a-creation',
    sentence: 'CreateMachine, InitializeMachine and DeleteMachine carry a fencing token.',
    async run(scene) {
      await scene.made(scene.machine('a'), { token: NEW });
      const machine = scene.machine('b');

      const { failure } = await scene.create(machine, { token: OLD });

      if (failure === undefined || codeOf(failure) !== 'FailedPrecondition') {
        throw new Violation(`CreateMachine with token ${OLD} after ${NEW} was answered with ${answerText(failure)}`);
      }
      await scene.requireNone(machine, 'a machine whose creation was refused');
    },
  },
  {
    name: 'highest-token-is-told',
    sentence: 'The refusal tells the highest token in `failure.fencing_token`,',
    async run(scene) {
      const machine = scene.machine('a');
      await scene.made(machine, { token: NEW });

      const { failure } = await scene.delete(machine, { token: OLD });

      // That it is refused at all, another rule is about.
      if (failure === undefined || failure.fencingToken === NEW) return;
      throw new Violation(`the refusal of token ${OLD} after ${NEW} tells ${failure.fencingToken}`);
    },
  },
  {
    name: 'tokens-of-another-cluster',
    sentence: 'For each cluster and namespace a',
    async run(scene) {
      await scene.made(scene.machine('a'), { token: NEW });
      const namespace = `${scene.machine('b').namespace}-other`;

      for (const other of [
        scene.machine('b', { cluster: `${scene.cluster}-other` }),
        scene.machine('c', { namespace, machineClass: scene.otherClass({ namespace }) }),
      ]) {
        const { failure } = await scene.create(other, { token: OLD });
        if (failure !== undefined && codeOf(failure) === 'FailedPrecondition') {
          throw new Violation(`token ${OLD} was refused because of token ${NEW} of another cluster or namespace`);
        }
      }
    },
  },
  {
    name: 'no-leader-election',
    sentence: 'there is nothing to compare, so it is neither refused nor remembered.',
    async run(scene) {
      const machine = scene.machine('a');
      await scene.made(machine, { token: NEW });

      const { failure } = await scene.create(machine, { token: 0n });
      if (failure !== undefined && codeOf(failure) === 'FailedPrecondition') {
        throw new Violation(`token 0 was answered with ${answerText(failure)}`);
      }
      const after = await scene.create(machine, { token: NEW });
      if (after.failure !== undefined && codeOf(after.failure) === 'FailedPrecondition') {
        throw new Violation(`after token 0, token ${NEW} was answered with ${answerText(after.failure)}`);
      }
    },
  },
];

/** A deletion by a manager that was replaced is refused. */
export async function requireRefused(scene: Scene, machine: Subject): Promise<void> {
  const { failure } = await scene.delete(machine, { token: OLD });
  if (failure !== undefined && codeOf(failure) === 'FailedPrecondition') return;
  throw new Violation(`DeleteMachine with token ${OLD} after ${NEW} was answered with ${answerText(failure)}`);
}
