import {
  MACHINE_CONDITION_TYPES,
  MACHINE_DEPLOYMENT_CONDITION_TYPES,
  MACHINE_SET_CONDITION_TYPES,
} from '../../pkg/apis/machine/v1alpha1/conditions.ts';
import { memberComments } from './comments.ts';
import { table } from './table.ts';

const FILE = 'pkg/apis/machine/v1alpha1/conditions.ts';

/** docs/reference/conditions.md: the conditions of our kinds. */
export async function conditionsReference(): Promise<string> {
  const { format } = await import('prettier');
  const text = `# Conditions

Generated from \`${FILE}\`. Reasons and messages say why, and what helps: \`kubectl describe\` shows them. A condition that is absent says nothing. Those
of Nodes and of the original [stay as they are](compatibility.md#conditions); those of [Cluster API](../operations/cluster-api.md) and
[IronCore](../operations/ironcore.md) are on their pages.

## Machines

In \`status.machineConditions\`. They are for display: no decision is made from them.

${await conditionTable(MACHINE_CONDITION_TYPES, 'MACHINE_CONDITION_TYPES')}
## MachineSets

In \`status.machineSetCondition\`.

${await conditionTable(MACHINE_SET_CONDITION_TYPES, 'MACHINE_SET_CONDITION_TYPES')}
## MachineDeployments

In \`status.conditions\`. [Rollouts](../concepts/rollouts.md#conditions-of-a-machinedeployment) has their reasons.

${await conditionTable(MACHINE_DEPLOYMENT_CONDITION_TYPES, 'MACHINE_DEPLOYMENT_CONDITION_TYPES')}`;
  return format(text, { parser: 'markdown', proseWrap: 'always', printWidth: 140 });
}

function conditionTable(types: readonly string[], constant: string): Promise<string> {
  const comments = memberComments(FILE, constant);
  return table(
    ['type', 'says'],
    types.map((type) => [type, comments.get(type) ?? '']),
  );
}
