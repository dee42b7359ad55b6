import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import { currentContext } from '../../../pkg/kube/client/config.ts';
import { ConfigError } from '../../../pkg/kube/client/config-error.ts';
import { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import { noticesOf, type Terminal } from '../terminal.ts';
import { NAMESPACE } from './objects.ts';
import type { TryOptions } from './try.ts';

/** Which cluster it is about. */
export interface Site {
  readonly context: string;
  readonly server: string;
  readonly cluster: CommandCluster;
  /** Leads others to the same cluster. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What is kept on this host. */
  readonly directory: string;
}

/** The context is kept, whatever `kubectl config use-context` does meanwhile. Throws CommandError. */
export async function openSite({ kubeconfig, context, requestTimeout }: TryOptions, terminal: Terminal): Promise<Site> {
  const { env } = terminal;
  const own = { ...env, KUBERNETES_SERVICE_HOST: undefined };
  const source = { kubeconfig, context, env: own, clock: new SystemClock(), isInteractive: true };
  const { name, server } = await currentContext(source).catch((err: unknown) => {
    throw err instanceof ConfigError ? new CommandError(err.message, { cause: err }) : err;
  });
  const key = createHash('sha256').update(`${name}\n${server}`).digest('hex').slice(0, 12);
  const state = env['XDG_STATE_HOME'] ?? path.join(env['HOME'] ?? homedir(), '.local', 'state');
  const directory = path.join(state, 'machinist', 'try', key);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const pinned = path.join(directory, 'context.yaml');
  writeFileSync(pinned, `apiVersion: v1\nkind: Config\ncurrent-context: ${JSON.stringify(name)}\n`, { mode: 0o600 });
  const files =
    kubeconfig !== '' ? kubeconfig : env['KUBECONFIG'] || path.join(env['HOME'] ?? homedir(), '.kube', 'config');
  const led = { ...own, KUBECONFIG: [pinned, files].join(path.delimiter) };
  const access = { kubeconfig: '', namespace: NAMESPACE, requestTimeout, env: led, command: 'try' };
  const cluster = await CommandCluster.open({ ...access, err: noticesOf(terminal) });
  return { context: name, server, cluster, env: led, directory };
}
