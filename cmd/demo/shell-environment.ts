import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** What a shell needs to use the demo. */
export interface ShellEnvironment {
  readonly kubectl: string;
  readonly kubeconfig: string;
  /** The checkout. */
  readonly root: string;
}

/**
 * Writes `env` into the demo's folder, for bash, zsh and sh: after `source .demo/env`, kubectl and machinist, or k and m for short, are those of
 * the demo and use its cluster and namespace. They are programs and not functions, because `k` often is an alias already.
 */
export function writeShellEnvironment(directory: string, { kubectl, kubeconfig, root }: ShellEnvironment): void {
  const bin = path.join(directory, 'bin');
  mkdirSync(bin);
  symlinkSync(kubectl, path.join(bin, 'kubectl'));
  symlinkSync('kubectl', path.join(bin, 'k'));
  const machinist = path.join(bin, 'machinist');
  const cache = process.env['NODE_COMPILE_CACHE'];
  const lines = [
    '#!/bin/sh',
    ...(cache === undefined ? [] : [`export NODE_COMPILE_CACHE=${quoted(cache)}`]),
    // The manager is no pod.
    `[ -n "\${MACHINIST_URL-}" ] || ! [ -f ${quoted(managerFile(directory))} ] || export MACHINIST_URL="$(cat ${quoted(managerFile(directory))})"`,
    `exec ${quoted(process.execPath)} ${quoted(path.join(root, 'cmd/machinist/main.ts'))} "$@"`,
  ];
  writeFileSync(machinist, `${lines.join('\n')}\n`);
  chmodSync(machinist, 0o755);
  for (const name of ['m', 'kubectl-machinist']) symlinkSync('machinist', path.join(bin, name));

  const inPath = quoted(bin);
  writeFileSync(
    path.join(directory, 'env'),
    `# For bash, zsh and sh: kubectl and machinist, or k and m, of the demo.
export KUBECONFIG=${quoted(kubeconfig)}
case ":$PATH:" in
  *:${inPath}:*) ;;
  *) export PATH=${inPath}":$PATH" ;;
esac
`,
  );
}

function managerFile(directory: string): string {
  return path.join(directory, 'manager');
}

/** Tells the programs of the shell where the manager serves its probes and metrics. */
export function writeManagerAddress(directory: string, address: string): void {
  writeFileSync(managerFile(directory), address);
}

/** One word of a shell, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
