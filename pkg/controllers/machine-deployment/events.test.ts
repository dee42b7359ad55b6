import { expect, test } from '@jest/globals';

import { machineDeployment } from '../../../test/builders.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { couldNotMarkNodes, couldNotMoveMachines } from './events.ts';

const forbidden = (name: string): ApiError => new ApiError(403, 'Forbidden', `nodes "${name}" is forbidden`);
const refused = (name: string, cause: unknown = forbidden(name)): { name: string; cause: unknown } => ({ name, cause });

test.each([
  {
    what: 'one Node',
    nodes: [refused('n-1')],
    told: '1 node(s) for the rollout: n-1: nodes of the machine is forbidden',
  },
  {
    what: 'Nodes that were answered the same, whatever their order',
    nodes: [refused('n-3'), refused('n-1'), refused('n-2')],
    told: '3 node(s) for the rollout: n-1 and 2 more: nodes of the machine is forbidden',
  },
  {
    what: 'Nodes that were answered differently',
    nodes: [refused('n-3', new Error('no route')), refused('n-2'), refused('n-1')],
    told: '3 node(s) for the rollout: n-1 and 1 more: nodes of the machine is forbidden; n-3: no route',
  },
  {
    what: 'Nodes each of which was answered otherwise',
    nodes: [5, 4, 3, 2, 1].map((n) => refused(`n-${n}`, new Error(`answer ${n}`))),
    told: '5 node(s) for the rollout: n-1: answer 1; n-2: answer 2; n-3: answer 3; and 2 other answers',
  },
])('$what that could not be marked are all told of in one Event', ({ nodes, told }) => {
  expect(couldNotMarkNodes(machineDeployment(), nodes).message).toBe(
    `Could not update ${told}. The rollout continues and the update is retried`,
  );
});

test('a Machine that could not be moved is told of in the same words', () => {
  expect(couldNotMoveMachines(machineDeployment(), [refused('m-1', new Error('no'))]).message).toBe(
    'Could not update 1 machine(s) for the rollout: m-1: no. The rollout continues and the update is retried',
  );
});
