import { CommandError } from '../command-error.ts';
import { MACHINE_DEPLOYMENT, objectName } from '../kinds.ts';
import { parseReferences } from '../references.ts';

/** What only MachineDeployments have. */
export const ROLLED_OUT_KINDS = [MACHINE_DEPLOYMENT] as const;

/**
 * The names of the MachineDeployments that were typed as `NAME...`, `TYPE/NAME...` or `TYPE NAME...`; undefined where those that a selector
 * selects are meant. Throws CommandError.
 */
export function deploymentNamesOf(
  words: readonly string[],
  selector: string | undefined,
): readonly string[] | undefined {
  const { named } = parseReferences(words, ROLLED_OUT_KINDS, { mayOmitType: true });
  if (named.length > 0 && selector !== undefined) throw new CommandError('names cannot be used with --selector');
  if (named.length > 0) return named.map(({ name }) => name);
  if (selector !== undefined) return undefined;
  throw new CommandError('expected a MachineDeployment, as NAME or mcd/NAME');
}

/** The MachineDeployment as kubectl calls it when something was done to it. */
export function shown(name: string): string {
  return objectName(MACHINE_DEPLOYMENT, name);
}

/** The MachineDeployment as kubectl calls it when something is wrong with it. */
export function quoted(name: string): string {
  const { plural, group } = MACHINE_DEPLOYMENT.resource;
  return `${plural}.${group} "${name}"`;
}

/** kubectl takes `--watch=false`; here a flag without a value is on and has a negation. */
export function withNegations(argv: readonly string[]): string[] {
  return argv.map((word) => {
    if (/^(--watch|-w)=(false|f|0)$/i.test(word)) return '--no-watch';
    return /^(--watch|-w)=(true|t|1)$/i.test(word) ? '--watch' : word;
  });
}
