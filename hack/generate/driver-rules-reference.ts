import type { Requirement, Rule } from '../../pkg/driver/conformance/rule.ts';
import { RULES } from '../../pkg/driver/conformance/rules/index.ts';
import { table } from './table.ts';

/** docs/reference/driver-rules.md, from the rules of the contract. */
export async function driverRulesReference(): Promise<string> {
  return `# Rules of \`machinist driver verify\`

Generated from \`pkg/driver/conformance/rules\`. Each rule tests one sentence of the
[contract](../../proto/machine/driver/v1/driver.proto). To run the rules, see [verifying a driver](../development/proving-a-driver.md).

${await table(
  ['rule', 'sentence of the contract', 'requires'],
  RULES.map(({ name, sentence, requires = [] }: Rule) => [`\`${name}\``, sentence, requires.map(code).join(', ')]),
)}`;
}

function code(need: Requirement): string {
  return `\`${need}\``;
}
