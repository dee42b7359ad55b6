import { join } from 'node:path';

/** The user that deploy/rbac/kwok.yaml binds. */
export const KWOK_USER = 'machinist-kwok';

/** Which kwok is started, whom it works as, and a folder of its own. */
export interface KwokOptions {
  readonly program: string;
  readonly kubeconfig: string;
  readonly directory: string;
}

/**
 * How kwok is started for the Nodes of kwok-driver. What this user has configured for another kwok, in ~/.kwok, does not count.
 * It logs a line for each renewed Lease, which nobody reads.
 */
export function kwokCommand({ program, kubeconfig, directory }: KwokOptions): { program: string; args: string[] } {
  const config = join(import.meta.dirname, 'kwok/kwok.yaml');
  const flags = [`--config=${config}`, `--kubeconfig=${kubeconfig}`, '--v=WARN'];
  return {
    program: '/usr/bin/env',
    args: [`KWOK_WORKDIR=${directory}`, program, ...flags],
  };
}
