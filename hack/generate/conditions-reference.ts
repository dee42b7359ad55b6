import {
  MACHINE_CONDITION_TYPES,
  MACHINE_DEPLOYMENT_CONDITION_TYPES,
  MACHINE_SET_CONDITION_TYPES,
} from '../../pkg/apis/machine/v1alpha1/conditions.ts';
import { memberComments } from './comments.ts';
import { formatted, PROSE } from './format.ts';
import { table } from './table.ts';

const FILE = 'pkg/apis/machine/v1alpha1/conditions.ts';

/** docs/reference/conditions.md: the conditions of our kinds. */
export async function conditionsReference(): Promise<string> {
  const text = `# Conditions

Generated from \`${FILE}\`. Reasons and messages contain the cause and the remedy; \`kubectl describe\` shows them. An absent condition has no meaning. Conditions of Nodes and of the
original [do not change](compatibility.md#conditions). For conditions of other APIs, see [Cluster API](../operations/cluster-api.md) and
[IronCore](../operations/ironcore.md).

## Machines

In \`status.machineConditions\`, for display: no decision depends on them.

${await conditionTable(MACHINE_CONDITION_TYPES, 'MACHINE_CONDITION_TYPES')}
## MachineSets

In \`status.machineSetCondition\`.

${await conditionTable(MACHINE_SET_CONDITION_TYPES, 'MACHINE_SET_CONDITION_TYPES')}
## MachineDeployments

In \`status.conditions\`. [Rollouts](../concepts/rollouts.md#conditions-of-a-machinedeployment) lists their reasons.

${await conditionTable(MACHINE_DEPLOYMENT_CONDITION_TYPES, 'MACHINE_DEPLOYMENT_CONDITION_TYPES')}`;
  return formatted('md', text, PROSE);
}

function conditionTable(types: readonly string[], constant: string): Promise<string> {
  const comments = memberComments(FILE, constant);
  return table(
    ['type', 'meaning'],
    types.map((type) => [type, comments.get(type) ?? '']),
  );
}
