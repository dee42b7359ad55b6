import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { SystemClock } from '../../../pkg/clock/system-clock.ts';
import { explain } from '../../../pkg/controllers/machine/explain/explain.ts';
import type { New } from '../../../pkg/kube/client.ts';
import { ConfigError } from '../../../pkg/kube/config-error.ts';
import { currentContext } from '../../../pkg/kube/config.ts';
import { ApiError, ignoreAlreadyExists, ignoreNotFound } from '../../../pkg/kube/errors.ts';
import {
  customResourceDefinitions,
  machineClasses,
  machineDeployments,
  machines,
  machineSets,
  namespaces,
  nodes,
  secrets,
} from '../../../pkg/kube/resource.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import { indentOf, wrapped } from '../../wrapped.ts';
import { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import { runForExitCode, type PrintLine, type Terminal } from '../terminal.ts';
import { TriedManager } from './manager.ts';
import {
  DEFINITIONS,
  definitions,
  FLEET,
  machineClass,
  machineDeployment,
  MACHINES,
  MARK_SELECTOR,
  NAMESPACE,
  namespaceObject,
  secret,
} from './objects.ts';
import { type Found, isLocal, planOf, undoOf } from './plan.ts';
import { removeDefinitions, removeManaged, removeRest } from './undo.ts';

export interface TryOptions {
  readonly undo: boolean;
  readonly yes: boolean;
  readonly context: string;
  readonly kubeconfig: string;
  readonly requestTimeout: number;
}

const LOOK_MS = 500;
const KINDS: readonly Resource<KubeObject>[] = [machineDeployments, machineSets, machines, machineClasses];

/** Which cluster it is about. */
interface Site {
  readonly context: string;
  readonly server: string;
  readonly cluster: CommandCluster;
  /** Leads others to the same cluster. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What is kept on this host. */
  readonly directory: string;
}

/** Runs the manager and a simulated provider until Ctrl-C, or removes what that has left. Resolves with the exit code. */
export async function tryMachinist(options: TryOptions, terminal: Terminal): Promise<number> {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) process.exit(130);
    stop.abort(new CommandError(`stopped by ${signal}; machinist try --undo removes what is there`));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  try {
    return await runForExitCode(terminal, async () => {
      const site = await openSite(options, terminal);
      await using _cluster = site.cluster;
      const { columns } = terminal;
      const out = (text: string): void => {
        for (const line of wrapped(text, columns, indentOf(text) + 4)) terminal.out(line);
      };
      await (options.undo ? undo : run)(site, options, out, stop.signal).catch((err: unknown) => {
        throw stop.signal.aborted ? stop.signal.reason : err; // what failed was interrupted
      });
    });
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, onSignal);
  }
}

/** The context is kept, whatever `kubectl config use-context` does meanwhile. */
async function openSite({ kubeconfig, context, requestTimeout }: TryOptions, { env }: Terminal): Promise<Site> {
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
  return { context: name, server, cluster: await CommandCluster.open(access), env: led, directory };
}

async function run(site: Site, options: TryOptions, out: PrintLine, signal: AbortSignal): Promise<void> {
  const { cluster, directory, env } = site;
  const plan = planOf(await look(cluster));
  if (plan.kind === 'refuse') throw new CommandError(plan.why);

  const made = [
    ...(plan.definitions.length === 0 ? [] : [`CustomResourceDefinitions ${plan.definitions.join(', ')}`]),
    `Namespace ${NAMESPACE} with a Secret, a MachineClass, a MachineDeployment of ${MACHINES} machines, Leases and Events`,
    `${MACHINES} Nodes with a taint, on which no pods run, and their Leases in kube-node-lease`,
  ];
  const what = plan.isResumed
    ? ['Continue what machinist try has begun in this cluster:', ...made.slice(-2)]
    : ['Run the manager and a simulated provider on this host, and create in the cluster:', ...made];
  await confirm(site, options, what, out, signal);

  for (const definition of definitions()) {
    if (plan.definitions.includes(definition.metadata.name))
      await create(cluster, customResourceDefinitions, definition);
  }
  await untilServed(cluster, signal);
  await create(cluster, namespaces, namespaceObject);
  await create(cluster, secrets, secret);
  await create(cluster, machineClasses, machineClass);
  await create(cluster, machineDeployments, machineDeployment);

  await using manager = await TriedManager.start({ env, directory });
  out(`The manager runs. Metrics: ${manager.address}/metrics; log: ${manager.logFile}`);
  const ended = new AbortController();
  const watching = show(cluster, out, ended.signal);
  try {
    const stopped = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
    await Promise.race([untilRunning(cluster, signal), manager.failed, stopped]);
    if (!signal.aborted) for (const line of thingsToTry(options)) out(line);
    await Promise.race([stopped, manager.failed]);
  } finally {
    ended.abort();
    await watching;
  }
  out('Stopping the manager. What it has created stays; machinist try continues, and machinist try --undo removes it.');
}

async function undo(site: Site, options: TryOptions, out: PrintLine, signal: AbortSignal): Promise<void> {
  const { cluster, directory, env } = site;
  const { namespace, ...found } = await look(cluster);
  const plan = undoOf(found);
  const leftNodes = (await cluster.reader.list(nodes, { labelSelector: MARK_SELECTOR })).items;
  if (namespace !== undefined && planOf({ namespace, definitions: [], foreign: [] }).kind === 'refuse') {
    if (namespace.metadata.deletionTimestamp === undefined)
      throw new CommandError(`machinist try has not created namespace ${NAMESPACE}: nothing is removed`);
  }
  if (namespace === undefined && plan.removed.length === 0 && leftNodes.length === 0) {
    rmSync(directory, { recursive: true, force: true });
    return out('There is nothing to remove.');
  }
  const names = plan.removed.map(({ metadata }) => metadata.name);
  await confirm(
    site,
    options,
    [
      'Remove from the cluster:',
      ...(namespace === undefined ? [] : [`Namespace ${NAMESPACE} with all machines; their VMs and Nodes first`]),
      ...(names.length === 0 ? [] : [`CustomResourceDefinitions ${names.join(', ')}`]),
    ],
    out,
    signal,
  );
  for (const [name, why] of plan.kept) out(`Keeping CustomResourceDefinition ${name}: ${why}.`);

  if (found.definitions.length === DEFINITIONS.length && (await hasManaged(cluster))) {
    await using manager = await TriedManager.start({ env, directory });
    const ended = new AbortController();
    const watching = show(cluster, out, ended.signal);
    try {
      await Promise.race([removeManaged(cluster, out, signal), manager.failed]);
    } finally {
      ended.abort();
      await watching;
    }
  }
  await removeRest(cluster, signal);
  out(`Removed namespace ${NAMESPACE}.`);
  await removeDefinitions(cluster, plan.removed, signal);
  if (names.length > 0) out('Removed the CustomResourceDefinitions.');
  rmSync(directory, { recursive: true, force: true });
  out('Nothing of machinist try is left in the cluster.');
}

/** What there is of our kinds. */
async function look(cluster: CommandCluster): Promise<Found> {
  const namespace = await cluster.reader.get(namespaces, { name: NAMESPACE }).catch(ignoreNotFound);
  const present: KubeObject[] = [];
  for (const name of DEFINITIONS) {
    const definition = await cluster.reader.get(customResourceDefinitions, { name }).catch(ignoreNotFound);
    if (definition !== undefined) present.push(definition);
  }
  const foreign: string[] = [];
  for (const resource of KINDS) {
    const { items } = await listed(cluster, resource);
    for (const { metadata } of items) {
      if (metadata.namespace !== NAMESPACE) foreign.push(`${resource.kind} ${metadata.namespace}/${metadata.name}`);
    }
  }
  return { namespace, definitions: present, foreign };
}

async function hasManaged(cluster: CommandCluster): Promise<boolean> {
  for (const resource of [...KINDS, secrets]) {
    if ((await cluster.list(resource)).length > 0) return true;
  }
  return false;
}

/** Everywhere; none while the kind does not exist. */
async function listed<T extends KubeObject>(cluster: CommandCluster, resource: Resource<T>) {
  return await cluster.reader.list(resource, { metadataOnly: true }).catch((err: unknown) => {
    if (!ApiError.is(err, 'NotServed')) throw err;
    return { items: [] as T[] };
  });
}

async function create<T extends KubeObject>(
  cluster: CommandCluster,
  resource: Resource<T>,
  object: New<T>,
): Promise<void> {
  await cluster.create(resource, object).catch(ignoreAlreadyExists); // from the last time
}

/** New kinds are served a moment later. */
async function untilServed(cluster: CommandCluster, signal: AbortSignal): Promise<void> {
  for (const resource of KINDS) {
    while (!(await isServed(cluster, resource))) await sleep(LOOK_MS, undefined, { signal });
  }
}

async function isServed(cluster: CommandCluster, resource: Resource<KubeObject>): Promise<boolean> {
  return await cluster.list(resource).then(
    () => true,
    (err: unknown) => {
      if (!ApiError.is(err, 'NotServed')) throw err;
      return false;
    },
  );
}

async function untilRunning(cluster: CommandCluster, signal: AbortSignal): Promise<void> {
  for (;;) {
    const all = await cluster.list(machines).catch(() => []);
    const running = all.filter(({ status }) => status?.currentStatus?.phase === 'Running');
    if (running.length >= MACHINES || signal.aborted) return;
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Prints what becomes of each machine until the signal is aborted. */
async function show(cluster: CommandCluster, out: PrintLine, signal: AbortSignal): Promise<void> {
  const informer = cluster.informer(machines, { namespace: NAMESPACE });
  const shown = new Map<string, string>();
  informer.onChange((old, current) => {
    const { name } = (current ?? old)?.metadata ?? { name: '' };
    const line = current === undefined ? 'gone' : lineOf(current);
    if (shown.get(name) === line) return;
    shown.set(name, line);
    out(`  ${name}  ${line}`);
  });
  await informer.run(signal).catch(() => undefined);
}

function lineOf(machine: Machine): string {
  const { phase, message } = explain(machine, 0);
  return `${(phase === '' ? 'New' : phase).padEnd(12)} ${message}`;
}

function thingsToTry({ kubeconfig, context }: TryOptions): readonly string[] {
  const access = [
    ...(kubeconfig === '' ? [] : [`--kubeconfig=${kubeconfig}`]),
    ...(context === '' ? [] : [`--context=${context}`]),
    `-n ${NAMESPACE}`,
  ].join(' ');
  return [
    '',
    'All machines are Running. Try in another terminal:',
    '',
    `  kubectl ${access} get mcd,mc`,
    `  kubectl ${access} scale mcd ${FLEET} --replicas=4`,
    `  kubectl ${access} delete mc --all`,
    `  machinist tree ${access}`,
    '',
    'Ctrl-C stops the manager; machinist try --undo removes everything.',
    '',
  ];
}

/** Shows what will be done to which cluster, and asks. Throws CommandError unless the answer is yes. */
async function confirm(
  { context, server }: Site,
  options: TryOptions,
  what: readonly string[],
  out: PrintLine,
  signal: AbortSignal,
): Promise<void> {
  out(`Context:  ${context}`);
  out(`Server:   ${server}`);
  out('');
  for (const [i, line] of what.entries()) out(i === 0 ? line : `  - ${line}`);
  out('');
  const isOwn = isLocal(context, server);
  if (!isOwn) out('WARNING: this cluster is not on this host. Use a cluster that nothing depends on.\n');
  if (options.yes) {
    if (isOwn || options.context !== '') return;
    throw new CommandError('the cluster is not on this host: with --yes, name it with --context');
  }
  if (!process.stdin.isTTY) throw new CommandError('there is no terminal to ask on; use --yes');
  const answer = await ask('Continue? [y/N] ', signal);
  if (!/^y(?:es)?$/i.test(answer)) throw new CommandError('nothing was changed');
}

async function ask(question: string, signal: AbortSignal): Promise<string> {
  process.stdout.write(question);
  const lines = createInterface({ input: process.stdin, terminal: false });
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new CommandError('nothing was changed')), { once: true });
      lines.once('line', (line) => resolve(line.trim())).once('close', () => resolve(''));
    });
  } finally {
    lines.close();
  }
}
