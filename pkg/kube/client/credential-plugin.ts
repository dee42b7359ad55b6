import { spawn, type ChildProcess } from 'node:child_process';

import { fromTimestamp, type Clock } from '../../base/clock/clock.ts';

/** The member `exec` of a kubeconfig's user: a program that prints credentials (client.authentication.k8s.io). */
export interface PluginSpec {
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly apiVersion?: string;
  readonly provideClusterInfo?: boolean;
  readonly installHint?: string;
}

/** What it prints, in the member `status`. */
export interface PluginCredential {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  readonly expirationTimestamp?: string;
}

export interface PluginSurroundings {
  readonly clock: Clock;
  /** What the program gets beside its own variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Somebody sits at the terminal, whom the program may ask. */
  readonly isInteractive: boolean;
  /** Called whenever the program is started, with its name. */
  readonly onRun?: ((program: string) => void) | undefined;
}

/** The cluster that credentials are for, as a plugin with `provideClusterInfo` is told. */
export type ClusterInfo = Readonly<Record<string, unknown>>;

/** Credentials that end sooner are asked for again; they are loaded each minute. */
const EARLY_MS = 90_000;
const LONGEST_OUTPUT = 1_048_576;
/** Longest part of what a plugin complains of that goes into a message. */
const EXCERPT = 300;

/** One credential plugin, and what it has printed last: that is used until it ends, or was refused. */
export class CredentialPlugin {
  readonly #surroundings: PluginSurroundings;
  #last: { readonly spec: string; readonly credential: PluginCredential } | undefined;

  constructor(surroundings: PluginSurroundings) {
    this.#surroundings = surroundings;
  }

  /** Runs the program unless what it printed last is good for a while yet. When the signal is aborted, it is killed. */
  async credential(
    spec: PluginSpec,
    how: { readonly refresh: boolean; readonly signal: AbortSignal; readonly cluster: ClusterInfo },
  ): Promise<PluginCredential> {
    const text = JSON.stringify([spec, how.cluster]);
    if (!how.refresh && this.#last?.spec === text && this.#isGood(this.#last.credential)) return this.#last.credential;
    this.#surroundings.onRun?.(spec.command);
    const credential = credentialOf(await run(spec, this.#surroundings, how), spec);
    this.#last = { spec: text, credential };
    return credential;
  }

  #isGood({ expirationTimestamp }: PluginCredential): boolean {
    const endsMs = fromTimestamp(expirationTimestamp);
    return endsMs === undefined || endsMs - this.#surroundings.clock.now() > EARLY_MS;
  }
}

/** What was printed may contain a credential: nothing of it is quoted. */
function credentialOf(printed: string, { command }: PluginSpec): PluginCredential {
  let status: PluginCredential | undefined;
  try {
    ({ status } = JSON.parse(printed) as { status?: PluginCredential });
  } catch {
    const what = printed.trim() === '' ? 'nothing' : 'something other than JSON';
    throw new Error(`the credential plugin ${command} printed ${what} instead of an ExecCredential`);
  }
  if (status?.token === undefined && status?.clientCertificateData === undefined)
    throw new Error('the credential plugin returned neither a token nor a certificate');
  return status;
}

/** Resolves with what the program has printed. Rejects with the signal's reason as soon as it is aborted. */
async function run(
  { command, args, env: own, apiVersion, provideClusterInfo, installHint = '' }: PluginSpec,
  { env, isInteractive }: PluginSurroundings,
  { signal, cluster }: { readonly signal: AbortSignal; readonly cluster: ClusterInfo },
): Promise<string> {
  signal.throwIfAborted();
  const asked = {
    kind: 'ExecCredential',
    apiVersion,
    spec: { interactive: isInteractive && process.stdin.isTTY, ...(provideClusterInfo === true ? { cluster } : {}) },
  };
  const child = spawn(command, args ?? [], {
    env: {
      ...env,
      ...(apiVersion === undefined ? {} : { KUBERNETES_EXEC_INFO: JSON.stringify(asked) }),
      ...Object.fromEntries((own ?? []).map(({ name, value }) => [name, value])),
    },
    stdio: isInteractive ? ['inherit', 'pipe', 'inherit'] : ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that what it has started ends with it; but it has no terminal then.
    detached: !isInteractive,
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let [printed, complaints] = ['', ''];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    if (printed.length > LONGEST_OUTPUT) reject(new Error('the output of the credential plugin is too large'));
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(0, EXCERPT);
  });
  child.on('error', (err: NodeJS.ErrnoException) => {
    if (err.code !== 'ENOENT') return reject(err);
    const hint = installHint === '' ? '' : `: ${installHint.trim()}`;
    reject(new Error(`the credential plugin ${command} was not found${hint}`, { cause: err }));
  });
  child.once('close', (code, killedBy) => {
    if (code === 0) return resolve(printed);
    const how = code === null ? `was killed by ${killedBy}` : `exited with code ${code}`;
    const why = complaints.trim() === '' ? '' : `: ${complaints.trim()}`;
    reject(new Error(`the credential plugin ${how}${why}`));
  });
  const giveUp = (): void => reject(signal.reason as Error);
  const end = (): void => kill(child, { isGroup: !isInteractive });
  signal.addEventListener('abort', giveUp, { once: true });
  // Nobody would read what it prints then, and nobody else would end it.
  process.once('exit', end);
  try {
    return await promise;
  } catch (err) {
    end();
    throw err;
  } finally {
    signal.removeEventListener('abort', giveUp);
    process.off('exit', end);
    child.stdout?.destroy();
    child.stderr?.destroy();
  }
}

/** At once and for sure: it may hang in whatever it does. */
function kill(child: ChildProcess, { isGroup }: { isGroup: boolean }): void {
  if (child.pid === undefined) return;
  try {
    process.kill(isGroup ? -child.pid : child.pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
