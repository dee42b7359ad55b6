import { join } from 'node:path';

import { resolveProgram, type BinariesOptions } from './binaries.ts';

/** The user that deploy/rbac/kwok.yaml binds. */
export const KWOK_USER = 'machinist-kwok';

/** Whom kwok works as, and a folder of its own. */
export interface KwokPlace {
  readonly kubeconfig: string;
  readonly directory: string;
}

/**
 * How kwok is started for the Nodes of kwok-driver; it is built where it is missing. What this user has configured for another kwok,
 * in ~/.kwok, does not count.
 */
export async function kwokCommand(
  { kubeconfig, directory }: KwokPlace,
  options: BinariesOptions = {},
): Promise<{ program: string; args: readonly string[] }> {
  const { path } = await resolveProgram('kwok', options);
  const config = join(import.meta.dirname, 'kwok/kwok.yaml');
  const args = [`KWOK_WORKDIR=${directory}`, path, `--config=${config}`, `--kubeconfig=${kubeconfig}`];
  return { program: '/usr/bin/env', args };
}
