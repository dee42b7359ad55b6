import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { Agent, request } from 'undici';

import { Api } from './api.ts';
import { applyManifests } from './apply.ts';
import { apiserverArguments, controllerManagerArguments, etcdArguments, etcdSocket, SERVICE_IP } from './arguments.ts';
import { describePrograms, resolvePrograms, type BinariesOptions, type Program } from './binaries.ts';
import { bootstrapRbac } from './bootstrap-rbac.ts';
import { Component } from './component.ts';
import { Connection, pkiDirectory } from './connection.ts';
import { ControlPlaneError, explainFileError } from './error.ts';
import { endLeftMachines } from './left-machines.ts';
import { cleanUpDeadRuns, openRun, type LedgerOptions, type LedgerRun } from './ledger.ts';
import { createPki, pkiFiles, type PkiFiles } from './pki.ts';
import { freePort } from './ports.ts';
import type { ProgramName } from './programs.ts';

/** Ports are chosen before they are used: someone else may be quicker. */
const PORT_ATTEMPTS = 5;
const PROBE_TIMEOUT_MS = 2_000;

/** How a control plane is started. Nothing is required. */
export interface ControlPlaneOptions extends LedgerOptions {
  /** Where its files go: absent or empty before, removed at the end. A new folder in the system's temporary one by default. */
  readonly directory?: string;
  /** Whether kube-controller-manager runs too (default true): approval of kubelets, node lifecycle, garbage collection. */
  readonly controllerManager?: boolean;
  /** The only controllers that kube-controller-manager runs, as its flag names them; by default those that a real cluster runs. */
  readonly controllers?: readonly string[];
  /** Further programs that must be there, for instance kubemark and kubectl. */
  readonly programs?: readonly ProgramName[];
  /** Fixed ports; a free one each by default. */
  readonly ports?: { readonly apiserver?: number; readonly controllerManager?: number };
  /** Appended to a program's arguments; the last one of a name counts. */
  readonly extraArguments?: Partial<Record<'etcd' | 'kube-apiserver' | 'kube-controller-manager', readonly string[]>>;
  /** Told in one line about builds, clean-ups and programs that ended by themselves. */
  readonly log?: (line: string) => void;
  /** Ends the start (not what was started). */
  readonly signal?: AbortSignal;
  /** Environment in which programs are looked for; `process.env` by default. */
  readonly env?: BinariesOptions['env'];
}

/**
 * Starts etcd, kube-apiserver and kube-controller-manager as processes of this one, and resolves when /readyz says ok and
 * kubelets may join. First ends what dead owners left behind. Throws ControlPlaneError, or the signal's reason; nothing is
 * left behind then.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  try {
    return await startUnexplained(options);
  } catch (err) {
    throw explainFileError(err);
  }
}

async function startUnexplained(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { log = () => undefined, signal, env, controllerManager = true } = options;
  const { ended, removed } = await cleanUpDeadRuns({ ...options, beforeRemoval: endLeftMachines });
  for (const what of [...ended, ...removed]) log(`cleaned up after a dead process: ${what}`);
  const names: ProgramName[] = ['etcd', 'kube-apiserver', ...(options.programs ?? [])];
  if (controllerManager) names.push('kube-controller-manager');
  const programs = await resolvePrograms(names, {
    progress: ({ message }) => log(message),
    log,
    ...(env === undefined ? {} : { env }),
    signal,
  });
  log(describePrograms(Object.values(programs)));

  const directory = makeDirectory(options.directory);
  const run = openRun(directory, { ledger: options.ledger });
  const components: Component[] = [];
  const launch = { options, programs, directory, run, components, log, signal };
  try {
    const connection = await launchServer(launch);
    if (controllerManager) await launchControllerManager(launch, connection);
    return new ControlPlane(connection, run, components);
  } catch (err) {
    await end(run, components);
    throw err;
  }
}

/** A running control plane. Its processes end with `stop`, or when this process ends by itself. */
export class ControlPlane {
  readonly connection: Connection;
  readonly directory: string;
  readonly url: string;
  /** Path of the admin's kubeconfig; others are made by `connection.kubeconfigFor`. */
  readonly kubeconfig: string;
  readonly etcd: Component;
  readonly apiserver: Component;
  readonly controllerManager: Component | undefined;
  /** Record here what else is started and belongs to this control plane (kubelets), so that it never outlives a crash. */
  readonly run: LedgerRun;
  readonly #components: readonly Component[];
  /** For a process that ends without `stop`, by an error or process.exit. */
  readonly #onExit = (): void => this.run.endNow();
  #stopped: Promise<void> | undefined;

  constructor(connection: Connection, run: LedgerRun, components: readonly Component[]) {
    const [etcd, apiserver, controllerManager] = components;
    if (etcd === undefined || apiserver === undefined) throw new Error('a control plane has at least two components');
    this.connection = connection;
    this.directory = run.directory;
    this.url = connection.url;
    this.kubeconfig = connection.kubeconfig;
    this.etcd = etcd;
    this.apiserver = apiserver;
    this.controllerManager = controllerManager;
    this.run = run;
    this.#components = components;
    process.once('exit', this.#onExit);
  }

  /** Ends all processes at once, those recorded in `run` too (no data is kept), and removes the directory. May be called again. */
  stop(): Promise<void> {
    process.off('exit', this.#onExit);
    this.#stopped ??= end(this.run, this.#components);
    return this.#stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

interface Launch {
  readonly options: ControlPlaneOptions;
  readonly programs: Partial<Record<ProgramName, Program>>;
  readonly directory: string;
  readonly run: LedgerRun;
  /** Everything started so far, in order: what has to be ended when the start fails. */
  readonly components: Component[];
  readonly log: (line: string) => void;
  readonly signal: AbortSignal | undefined;
}

/** etcd, the certificates, kube-apiserver and what every cluster needs in it. */
async function launchServer(launch: Launch): Promise<Connection> {
  const { directory, programs, signal } = launch;
  const etcd = component(launch, 'etcd', etcdArguments(directory), () => probeSocket(etcdSocket(directory), '/health'));
  const hosts = ['127.0.0.1', 'localhost', SERVICE_IP, 'kubernetes.default.svc'];
  const [pki] = await allOrFirstError([createPki(pkiDirectory(directory), hosts), etcd.start(signal)]);
  const url = await onFreePort(launch.options.ports?.apiserver, (port) => startApiserver(launch, pki, port));
  const connection = await Connection.create(directory, { url, programs });
  const api = connection.api();
  try {
    await applyManifests(api, bootstrapRbac);
  } finally {
    await api.close();
  }
  return connection;
}

async function startApiserver(launch: Launch, pki: PkiFiles, port: number): Promise<string> {
  const url = `https://127.0.0.1:${port}`;
  const args = apiserverArguments(launch.directory, pki, port);
  await component(launch, 'kube-apiserver', args, () => probeServer(url, pki, '/readyz')).start(launch.signal);
  return url;
}

async function launchControllerManager(launch: Launch, connection: Connection): Promise<void> {
  const pki = pkiFiles(pkiDirectory(launch.directory));
  const kubeconfig = await connection.kubeconfigFor({ user: 'system:kube-controller-manager' });
  await onFreePort(launch.options.ports?.controllerManager, async (port) => {
    const args = controllerManagerArguments(pki, kubeconfig, port, launch.options.controllers);
    const isReady = (): Promise<boolean> => probeServer(`https://127.0.0.1:${port}`, pki, '/healthz');
    await component(launch, 'kube-controller-manager', args, isReady).start(launch.signal);
  });
}

function component(
  { options, programs, directory, run, components, log }: Launch,
  name: 'etcd' | 'kube-apiserver' | 'kube-controller-manager',
  args: readonly string[],
  isReady: () => Promise<boolean>,
): Component {
  const program = programs[name]?.path;
  if (program === undefined) throw new Error(`starting ${name}: its program was not looked for`);
  const made = new Component({
    name,
    program,
    args: [...args, ...(options.extraArguments?.[name] ?? [])],
    directory,
    logFile: join(directory, `${name}.log`),
    run,
    isReady,
    log,
  });
  const earlier = components.findIndex((c) => c.name === name); // an attempt on a port that was taken
  if (earlier === -1) components.push(made);
  else components[earlier] = made;
  return made;
}

/** Tries another port when the first one was taken between choosing and using it; a port that was asked for is final. */
async function onFreePort<T>(fixed: number | undefined, start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(fixed ?? (await freePort()));
    } catch (err) {
      const isTaken = ControlPlaneError.hasCode(err, 'address-in-use');
      if (!isTaken || fixed !== undefined || attempt === PORT_ATTEMPTS) throw err;
    }
  }
}

async function probeServer(url: string, { ca }: PkiFiles, path: string): Promise<boolean> {
  const api = new Api({ url, ca: readFileSync(ca, 'utf8') });
  try {
    const { status } = await api.request(path, { timeoutMs: PROBE_TIMEOUT_MS });
    return status === 200;
  } finally {
    await api.close();
  }
}

async function probeSocket(socketPath: string, path: string): Promise<boolean> {
  const agent = new Agent({ connect: { socketPath } });
  try {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const { statusCode, body } = await request(`http://localhost${path}`, { dispatcher: agent, signal });
    await body.dump();
    return statusCode === 200;
  } finally {
    await agent.destroy();
  }
}

/** Waits for all of them even when one fails, so that nothing goes on in a directory that is being removed. */
async function allOrFirstError<A, B>(work: [Promise<A>, Promise<B>]): Promise<[A, B]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

function makeDirectory(wanted: string | undefined): string {
  if (wanted === undefined) return mkdtempSync(join(tmpdir(), 'machinist-control-plane-'));
  const directory = resolve(wanted);
  if (existsSync(directory) && readdirSync(directory).length > 0) {
    const remedy = 'name another one or empty it';
    throw new ControlPlaneError(
      'start-failed',
      `The directory ${directory} for the control plane is not empty: ${remedy}.`,
    );
  }
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}

async function end(run: LedgerRun, components: readonly Component[]): Promise<void> {
  await Promise.all(components.map((c) => c.stop('SIGKILL')));
  await run.end();
}
