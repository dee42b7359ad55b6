import { GROUP } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import { machineDeployments } from '../../../pkg/kube/resource.ts';
import { CommandError } from '../command-error.ts';

/** How kubectl names the kind: plural, singular, kind and short name, with or without the group. */
const KIND_NAMES: ReadonlySet<string> = new Set(
  [machineDeployments.plural, 'machinedeployment', 'mcd'].flatMap((name) => [name, `${name}.${GROUP}`]),
);

/** The name of the MachineDeployment that was typed as `NAME`, `TYPE/NAME` or `TYPE NAME`. Throws CommandError. */
export function deploymentNameOf(words: readonly string[]): string {
  const [first = '', second, ...rest] = words;
  const parts = second === undefined ? first.split('/') : [first, second];
  const [type, name] = parts.length === 1 ? ['mcd', parts[0]] : parts;
  if (rest.length > 0 || parts.length > 2 || name === undefined || name === '') {
    throw new CommandError('expected one MachineDeployment, as NAME, mcd/NAME or machinedeployment NAME');
  }
  if (!KIND_NAMES.has((type ?? '').toLowerCase())) {
    throw new CommandError(`the server doesn't have a rollout of type "${type}": only MachineDeployments have one`);
  }
  return name;
}

/** The MachineDeployment as kubectl calls it when something was done to it. */
export function shown(name: string): string {
  return `machinedeployment.${GROUP}/${name}`;
}

/** The MachineDeployment as kubectl calls it when something is wrong with it. */
export function quoted(name: string): string {
  return `${machineDeployments.plural}.${GROUP} "${name}"`;
}

/** kubectl takes `--watch=false`; here a flag without a value is on and has a negation. */
export function withNegations(argv: readonly string[]): string[] {
  return argv.map((word) => {
    if (/^(--watch|-w)=(false|f|0)$/i.test(word)) return '--no-watch';
    return /^(--watch|-w)=(true|t|1)$/i.test(word) ? '--watch' : word;
  });
}
