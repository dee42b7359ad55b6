import type { Requirement, Rule } from '../../pkg/conformance/rule.ts';
import { RULES } from '../../pkg/conformance/rules/index.ts';
import { table } from './table.ts';

/** docs/reference/driver-rules.md, from the rules of the contract. */
export async function driverRulesReference(): Promise<string> {
  return `# Rules of \`machinist driver verify\`

Generated from \`pkg/conformance/rules\`. Each rule tries what one sentence of the
[contract](../../proto/machine/driver/v1/driver.proto) asks for. [Proving a driver](../development/proving-a-driver.md) says
how to use them.

${await table(
  ['rule', 'the contract', 'needs'],
  RULES.map(({ name, sentence, requires = [] }: Rule) => [`\`${name}\``, sentence, requires.map(code).join(', ')]),
)}`;
}

function code(need: Requirement): string {
  return `\`${need}\``;
}
