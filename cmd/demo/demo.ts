import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { Cluster } from '../../hack/autoscaler/cluster.ts';
import { type ControlPlane, startControlPlane } from '../../hack/control-plane/control-plane.ts';
import { ControlPlaneError, explainFileError } from '../../hack/control-plane/error.ts';
import { BINARIES_VARIABLE, CHECKSUM_VARIABLE } from '../../hack/control-plane/given-binaries.ts';
import { kubeconfig, writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { KWOK_USER, kwokCommand } from '../../hack/control-plane/kwok.ts';
import { openRun } from '../../hack/control-plane/ledger.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { loadEndpoint } from '../../pkg/kube/client/config.ts';
import { Transport } from '../../pkg/kube/client/transport.ts';
import { playAutoscaler, showAutoscaling } from './autoscale.ts';
import type { DemoDriver, DemoOptions } from './command.ts';
import { DEMO_POOL, machineNames, SMALL, SPARE } from './ironcore-objects.ts';
import { keepControlPlane } from './keep-control-plane.ts';
import { keepRunning, type KeepRunningOptions } from './keep-running.ts';
import { runKubectl } from './kubectl.ts';
import { beginLine, endLine, print, printText } from './lines.ts';
import {
  NAMESPACE,
  podsOn,
  providerOf,
  WEB,
  WORKERS,
  writeDefinitions,
  writeIronCore,
  writeManifests,
} from './manifests.ts';
import { DemoError, type DemoPlace, takePlace } from './place.ts';
import { machinesDirectory } from '../../hack/control-plane/left-machines.ts';
import { playProvider, type PlayedProvider } from './play-provider.ts';
import { playScheduler, untilRunning } from './pods.ts';
import { recordedMachines, recordMachines } from './record-machines.ts';
import { writeManagerAddress, writeShellEnvironment } from './shell-environment.ts';
import { thingsToTry } from './things-to-try.ts';
import { arePools, areRunning, IronCoreWatch, provideVolumes } from './watch-ironcore.ts';
import { areUp, MachineWatch, type MachinesSnapshot } from './watch-machines.ts';

const root = path.resolve(import.meta.dirname, '../..');
/** How long machines may take to come up, or to go, before `--once` calls it a failure. */
const PATIENCE_MS = 5 * 60_000;
const KEEP_ALIVE_MS = 3_600_000;
/** How a person ends the demo, with the exit codes that shells use; SIGHUP: the terminal was closed. */
const STOPS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const EXIT_UNHEARD = 141; // as of SIGPIPE

/** Users that deploy/rbac binds to the shipped roles. */
const MANAGER_USER = 'machinist';
const DRIVER_USERS = { sim: 'machinist-sim-driver', kwok: 'machinist-kwok-driver' } as const;
const CLUSTER_API_USER = 'machinist-cluster-api-driver';
const RUNTIME_PID = 'runtime.pid';
const IRONCORE_MACHINES = 'machines.compute.ironcore.dev';
/** For how many Machines the pool has room beside the first ones. */
const ROOM = 3;

/** What is built besides the control plane: what the driver needs, and no more. */
const PROGRAMS = { local: ['kubectl', 'kubemark'], sim: ['kubectl'], kwok: ['kubectl', 'kwok'] } as const;

/** Everything of a running demo, undone in reverse order. */
interface Running {
  readonly options: DemoOptions;
  readonly place: DemoPlace;
  readonly controlPlane: ControlPlane;
  readonly kubectl: string;
  readonly kubeconfig: string;
  /** Folder of the sockets that programs listen on. */
  readonly sockets: string;
  readonly stop: AbortController;
  readonly undo: (() => Promise<void>)[];
}

/**
 * Runs the demo. Resolves with the exit code: 0; 1 when something did not work, which was then said in one sentence; that of a signal which
 * ended it. A second signal ends everything at once.
 */
export async function demo(options: DemoOptions): Promise<number> {
  const stop = new AbortController();
  const undo: (() => Promise<void>)[] = [];
  const ends: (() => void)[] = [];
  let stopCode: number | undefined;
  const interrupt = (signal: string, code: number): void => {
    if (stopCode !== undefined) return endAtOnce(ends, stopCode);
    stopCode = code;
    if (process.stdout.isTTY) process.stdout.write('\n'); // after what the terminal shows of Ctrl-C
    stop.abort(new DemoError(`stopped by ${signal}`));
  };
  const listeners = Object.entries(STOPS).map(([signal, code]) => [signal, () => interrupt(signal, code)] as const);
  for (const [signal, listener] of listeners) process.on(signal, listener);
  // Who closed the terminal or the pipe wants no demo; what is removed then is told to nobody.
  const unheard = (): void => {
    if (stopCode === undefined) interrupt('SIGPIPE', EXIT_UNHEARD);
  };
  for (const output of [process.stdout, process.stderr]) output.on('error', unheard);
  // The clock's timers keep no process alive; while something is being removed nothing else may.
  const keepAlive = setInterval(() => undefined, KEEP_ALIVE_MS);
  try {
    await runDemo(options, stop, { undo, ends });
    return 0;
  } catch (thrown) {
    if (stopCode !== undefined) return stopCode; // whatever failed, failed because of that
    const err = explainFileError(thrown);
    if (!(err instanceof DemoError) && !(err instanceof ControlPlaneError)) throw err;
    console.error(err.message);
    if (undo.length > 0) keepLogs();
    return 1;
  } finally {
    if (undo.length > 0) beginLine('removing everything…');
    await undoAll(undo);
    if (undo.length > 0) endLine('done');
    clearInterval(keepAlive);
    for (const [signal, listener] of listeners) process.off(signal, listener);
  }
}

/** For a person who does not want to wait: no program is asked any more. */
function endAtOnce(ends: readonly (() => void)[], code: number): void {
  for (const end of ends.toReversed()) end();
  endLine('stopped at once');
  process.exit(code);
}

/** Anyone who looks for the reason of a failure needs the logs of all programs; everything else of the demo goes. */
function keepLogs(): void {
  const logs = path.join(root, '.demo', 'logs');
  if (!existsSync(logs) || readdirSync(logs).length === 0) return;
  try {
    const kept = mkdtempSync(path.join(tmpdir(), 'machinist-demo-logs-'));
    cpSync(logs, kept, { recursive: true });
    console.error(`All logs are kept in ${kept}.`);
  } catch {
    // A full disk may be the very reason.
  }
}

/** In reverse order; what cannot be undone does not keep the rest from being undone. */
async function undoAll(undo: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of undo.toReversed()) await step().catch((err: unknown) => failures.push(err));
  if (failures.length > 0) throw failures[0];
}

/** How what was started is ended: in order, or in an instant. */
interface Endings {
  readonly undo: (() => Promise<void>)[];
  readonly ends: (() => void)[];
}

async function runDemo(options: DemoOptions, stop: AbortController, endings: Endings): Promise<void> {
  const running = await startCluster(options, stop, endings);
  if (options.api === 'ironcore') return await showIronCore(running);
  const drivers = await startDriver(running);
  const manager = await startManager(running, managerFlags(running, drivers.address), `${providerOf(options)} driver`);
  await applyObjects(running);

  const watch = await watchMachines(running);
  if (isLive(options)) {
    const { showLive } = await import('./live-view.ts');
    watch.isSilent = true;
    const list = (): void => printThingsToTry(running, manager);
    return await showLive({ root, kubeconfig: running.kubeconfig, manager, list, signal: stop.signal });
  }
  if (options.autoscaler) await autoscale(running, watch);
  else await awaitMachines(running, watch);
  await drivers.provider?.untilRunning(options.machines, deadline(running, 'the Machines of Cluster API did not run'));

  if (options.tour && (await showTour(running, watch, manager))) return;
  if (options.once) return checkRemoval(running, watch);
  printThingsToTry(running, manager);
  await watch.until(() => false, stop.signal);
}

/** Resolves when the tour has ended: with true when nobody is there who could try something else. */
async function showTour(running: Running, watch: MachineWatch, manager: string): Promise<boolean> {
  const { options, place, controlPlane, stop } = running;
  const yes = options.yes || !process.stdin.isTTY;
  const { takeTour } = await import('./tour.ts');
  watch.isSilent = true;
  await takeTour({
    watch,
    controlPlane,
    machines: options.machines,
    directory: place.directory,
    typedDirectory: typed(place.directory),
    manager,
    yes,
    signal: stop.signal,
    onStep: (isRunning) => (watch.isSilent = !isRunning),
  });
  watch.isSilent = false;
  return yes;
}

/** Whether a person watches machines, and nothing else is shown. */
function isLive({ once, tour, lines, autoscaler, driver }: DemoOptions): boolean {
  const isPlain = !once && !tour && !lines && !autoscaler && driver !== 'kwok';
  return isPlain && process.stdin.isTTY && process.stdout.isTTY;
}

function printThingsToTry({ options, place }: Running, manager: string): void {
  printText(thingsToTry({ ...options, directory: typed(place.directory), manager }));
}

/** A path as a person types it. */
function typed(from: string): string {
  return path.relative(process.cwd(), from);
}

/** Machines of IronCore, from a pool that there is to Machines that run; with `--once`, until all are gone. */
async function showIronCore(running: Running): Promise<void> {
  const { options, place, controlPlane, stop, undo } = running;
  const { machines } = options;
  const socket = path.join(running.sockets, 'runtime.sock');
  start(running, 'runtime', path.join(root, 'cmd/demo/runtime-main.ts'), [
    `--socket=${socket}`,
    `--class=${SMALL}`,
    `--room=${machines + ROOM}`,
    `--pid-file=${path.join(place.directory, RUNTIME_PID)}`,
  ]);
  const flags = ['--controllers=ironcore', `--ironcore-pool=${DEMO_POOL}=unix://${socket}`];
  const manager = await startManager(running, flags, 'runtime of a pool');
  const api = controlPlane.connection.api();
  undo.push(() => api.close());
  await kubectl(running, ['apply', '-f', writeIronCore(place.directory, machines)]);
  await provideVolumes(api, [SPARE, ...machineNames(machines)]);
  print(
    `applied a MachineClass, a Network, and ${machines} Machine(s) of IronCore, each with a Volume and a NetworkInterface`,
  );

  const watch = new IronCoreWatch(api, (name, what) => print(`  ${name}  ${what}`));
  print(`waiting for ${machines} machine(s):`);
  await watch.until((now) => areRunning(now, machines), deadline(running, 'the machines did not come up'));
  print('all Machines are Running, and their volumes and network interfaces are attached');
  if (!options.once) {
    printThingsToTry(running, manager);
    return await watch.until(() => false, stop.signal);
  }
  await loseRuntime(running, watch);
  print('deleting the Machines; each is removed when the runtime has removed its machine…');
  await kubectl(running, ['delete', IRONCORE_MACHINES, '--all', '--wait=false']);
  await watch.until((now) => now.length === 0, deadline(running, 'the machines were not removed'));
  print('no Machines are left');
}

/** The runtime halts, and goes on: its pool is lost meanwhile, and its Machines say so and stay. */
async function loseRuntime(running: Running, watch: IronCoreWatch): Promise<void> {
  const { options, place } = running;
  const pid = Number(readFileSync(path.join(place.directory, RUNTIME_PID), 'utf8'));
  print('halting the runtime: its Machines must not change while the pool is unreachable…');
  process.kill(pid, 'SIGSTOP');
  try {
    await watch.until((_now, pools) => arePools(pools, 'False'), deadline(running, 'the pool was not lost'));
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await watch.until(
    (now, pools) => arePools(pools, 'True') && areRunning(now, options.machines),
    deadline(running, 'the pool did not come back'),
  );
  print('the runtime responds again, and its Machines are unchanged');
}

async function awaitMachines(running: Running, watch: MachineWatch): Promise<void> {
  const { machines } = running.options;
  print(`waiting for ${machines} machine(s):`);
  await watch.until((now) => areUp(now, machines), deadline(running, 'the machines did not come up'));
  print('all machines are Running and their Nodes are Ready');
  if (running.options.driver === 'kwok') await showPods(running);
}

/** There is no scheduler in this cluster, and to build one takes as long as to build kwok. */
async function showPods(running: Running): Promise<void> {
  const { controlPlane, options, undo } = running;
  const pods = podsOn(options.machines);
  print(`Deployment "${WEB.name}" requests ${pods} pods; a model of kube-scheduler binds them…`);
  const api = controlPlane.connection.api();
  undo.push(() => api.close());
  const cluster = new Cluster(api);
  undo.push(playScheduler(cluster, print));
  await untilRunning(cluster, pods, deadline(running, 'the pods did not run'));
  print(`${pods} pods run on ${options.machines} Node(s), and a single kwok process simulates all their kubelets`);
}

async function autoscale(running: Running, watch: MachineWatch): Promise<void> {
  const { controlPlane, options, undo } = running;
  const api = controlPlane.connection.api();
  undo.push(() => api.close());
  const signal = deadline(running, 'machines did not come and go');
  undo.push(await playAutoscaler({ api, address: socketAddress(running, 'autoscaler'), print, signal }));
  await showAutoscaling({ api, watch, machines: options.machines, print, signal });
}

async function startCluster(options: DemoOptions, stop: AbortController, { undo, ends }: Endings): Promise<Running> {
  const place = await takePlace(path.join(root, '.demo'), print);
  ends.push(() => endPlace(place));
  undo.push(async () => {
    rmSync(place.directory, { recursive: true, force: true });
    place.run.close();
  });
  mkdirSync(path.join(place.directory, 'logs'));
  print('starting etcd, kube-apiserver and kube-controller-manager…');
  const controlPlane = await startControlPlane({
    directory: path.join(place.directory, 'control-plane'),
    programs: options.api === 'ironcore' ? ['kubectl'] : PROGRAMS[options.driver],
    log: print,
    signal: stop.signal,
    env: environmentOf(options),
  });
  undo.push(() => controlPlane.stop());
  ends.push(() => controlPlane.run.endNow());
  undo.push(keepControlPlane(controlPlane, keptBy(options, stop)));
  const config = path.join(place.directory, 'kubeconfig');
  const { url, connection } = controlPlane;
  writeKubeconfig(config, { url, ca: connection.ca, identity: connection.admin, namespace: NAMESPACE });
  const program = programPath(controlPlane, 'kubectl');
  writeShellEnvironment(place.directory, { kubectl: program, kubeconfig: config, root });
  print(`control plane ready at ${controlPlane.url}; for another shell: source ${typed(place.directory)}/env`);

  const sockets = makeSocketDirectory(undo, ends);
  const running = { options, place, controlPlane, kubectl: program, kubeconfig: config, sockets, stop, undo };
  await kubectl(running, ['apply', '-f', path.join(root, 'deploy/namespace.yaml')]);
  await kubectl(running, [
    'apply',
    '--server-side',
    '-f',
    // Where IronCore is shown, our kinds are not needed, and one of theirs has the same name.
    path.join(root, options.api === 'ironcore' ? 'crds/ironcore' : 'crds'),
    '-f',
    path.join(root, 'deploy/rbac'),
  ]);
  if (options.api === 'cluster-api') await installClusterAPI(running);
  if (options.api === 'ironcore')
    await kubectl(running, ['wait', '--for=condition=Established', '-f', path.join(root, 'crds/ironcore')]);
  return running;
}

/** In which programs are looked for. */
function environmentOf({ binaries, binariesChecksum }: DemoOptions): NodeJS.ProcessEnv {
  if (binaries === '') return process.env;
  return { ...process.env, [BINARIES_VARIABLE]: binaries, [CHECKSUM_VARIABLE]: binariesChecksum };
}

/** Ends the programs of a demo, then the kubelets that its driver has started until then. */
function endPlace({ directory, run }: DemoPlace): void {
  run.killNow();
  for (const { machineName, process: kubelet } of recordedMachines(machinesDirectory(directory))) {
    if (kubelet !== undefined) run.register(`kubelet of ${machineName}`, kubelet.pid);
  }
  run.endNow();
}

/** The kinds of Cluster API, and those of a provider of the demo; resolves when they are served. */
async function installClusterAPI(running: Running): Promise<void> {
  const file = writeDefinitions(running.place.directory);
  await kubectl(running, ['apply', '--server-side', '-f', path.join(root, 'crds/cluster-api'), '-f', file]);
  await kubectl(running, ['wait', '--for=condition=Established', '-f', file]);
}

/** What the manager asks, and a provider of Cluster API that is played. */
interface StartedDriver {
  readonly address: string;
  readonly provider?: PlayedProvider;
}

/** Starts the driver, and what its machines need. */
async function startDriver(running: Running): Promise<StartedDriver> {
  const { driver } = running.options;
  const address = socketAddress(running, 'driver');
  const state = machinesDirectory(running.place.directory);
  if (driver === 'local') await keepMachines(running, state);
  if (driver === 'kwok') await startKwok(running);
  const args = ['--address', address, '--state-directory', state, ...(await driverArguments(running, driver))];
  start(running, `${driver}-driver`, path.join(root, `cmd/${driver}-driver/main.ts`), args);
  return running.options.api === 'cluster-api' ? await startClusterAPI(running, address) : { address };
}

/** A provider of Cluster API before the driver at `machines`, and the driver for Cluster API. */
async function startClusterAPI(running: Running, machines: string): Promise<StartedDriver> {
  const { controlPlane, place, undo } = running;
  const api = controlPlane.connection.api();
  undo.push(() => api.close());
  const provider = playProvider({ api, address: machines, print });
  undo.push(() => provider.end());
  const address = socketAddress(running, 'cluster-api');
  const config = await controlPlane.connection.kubeconfigFor({ user: CLUSTER_API_USER });
  const state = path.join(place.directory, 'cluster-api');
  start(running, 'cluster-api-driver', path.join(root, 'cmd/cluster-api-driver/main.ts'), [
    '--address',
    address,
    '--state-directory',
    state,
    '--kubeconfig',
    config,
  ]);
  return { address, provider };
}

/** Where its machines come from, or go to. */
async function driverArguments({ controlPlane }: Running, driver: DemoDriver): Promise<readonly string[]> {
  if (driver === 'local') return ['--kubelet-binary', programPath(controlPlane, 'kubemark'), '--capacity', '500'];
  const cluster = ['--kubeconfig', await controlPlane.connection.kubeconfigFor({ user: DRIVER_USERS[driver] })];
  return driver === 'sim' ? [...cluster, '--node-leases'] : cluster;
}

/** Kubelets outlive their driver: they end with the demo, whatever becomes of that. */
async function keepMachines({ place, undo }: Running, state: string): Promise<void> {
  const { endAll } = await import('../../packages/providers/local/end-all.ts');
  undo.push(async () => void (await endAll(state)));
  const endRecording = recordMachines(place.run, state);
  undo.push(async () => endRecording());
}

async function startKwok(running: Running): Promise<void> {
  const { controlPlane, place } = running;
  const config = await controlPlane.connection.kubeconfigFor({ user: KWOK_USER });
  const program = programPath(controlPlane, 'kwok');
  startProgram(running, 'kwok', kwokCommand({ program, kubeconfig: config, directory: place.directory }));
}

/** A socket's path may have 107 characters only; a checkout may lie deeper than that. */
function makeSocketDirectory(undo: Endings['undo'], ends: Endings['ends']): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'machinist-'));
  undo.push(async () => rmSync(folder, { recursive: true, force: true }));
  const sockets = openRun(folder);
  undo.push(async () => sockets.endNow());
  ends.push(() => sockets.endNow());
  return sockets.directory;
}

function socketAddress({ sockets }: Running, name: 'driver' | 'autoscaler' | 'cluster-api'): string {
  return `unix://${path.join(sockets, `${name}.sock`)}`;
}

/** Which driver the manager asks, and what it does besides. */
function managerFlags(running: Running, driver: string): readonly string[] {
  const { options } = running;
  return [
    `--driver=${providerOf(options)}=${driver}`,
    ...(options.api === 'cluster-api' ? ['--controllers=*,cluster-api'] : []),
    ...(options.autoscaler ? [`--autoscaler-grpc-address=${socketAddress(running, 'autoscaler')}`] : []),
  ];
}

/** Returns where the manager serves its probes and metrics. */
async function startManager(running: Running, flags: readonly string[], beside: string): Promise<string> {
  const { controlPlane } = running;
  const own = await controlPlane.connection.kubeconfigFor({ user: MANAGER_USER });
  const port = await freePort();
  start(running, 'machinist', path.join(root, 'cmd/machinist/main.ts'), [
    'run',
    `--namespace=${NAMESPACE}`,
    `--control-kubeconfig=${own}`,
    `--target-kubeconfig=${own}`,
    ...flags,
    '--address=127.0.0.1',
    '--status-page',
    // Short, so that a machine killed at once is replaced while one watches.
    '--machine-safety-grace=10s',
    `--port=${port}`,
  ]);
  const address = `http://127.0.0.1:${port}`;
  writeManagerAddress(running.place.directory, address);
  print(`starting the manager and the ${beside}; metrics: ${address}/metrics`);
  return address;
}

/** As in the image: without it each program holds on to 100 MB of garbage. */
const LEAN = ['--max-semi-space-size=2'];

/** With `--once` the first unexpected end is a failure; a person watching should see how a cluster heals itself. */
const MAX_RESTARTS = 5;

function start(running: Running, name: string, script: string, args: readonly string[]): void {
  startProgram(running, name, { program: process.execPath, args: [...LEAN, script, ...args] });
}

function startProgram(running: Running, name: string, command: Pick<KeepRunningOptions, 'program' | 'args'>): void {
  const { options, place, stop, undo } = running;
  const logFile = path.join(place.directory, 'logs', `${name}.log`);
  undo.push(keepRunning({ name, ...command, logFile, run: place.run, ...keptBy(options, stop) }));
}

function keptBy(
  { once }: DemoOptions,
  stop: AbortController,
): Pick<KeepRunningOptions, 'mostRestarts' | 'print' | 'giveUp'> {
  return { mostRestarts: once ? 0 : MAX_RESTARTS, print, giveUp: (why) => stop.abort(new DemoError(why)) };
}

async function applyObjects(running: Running): Promise<void> {
  const { controlPlane } = running;
  const { url, connection } = controlPlane;
  const joiningWith = (token: string): string => kubeconfig({ url, ca: connection.ca, identity: { token } });
  const token = `${randomBytes(3).toString('hex')}.${randomBytes(8).toString('hex')}`;
  const files = writeManifests(running.place.directory, running.options, {
    userData: joiningWith('<<BOOTSTRAP_TOKEN>>'),
    first: { token, userData: joiningWith(token) },
  });
  await kubectl(running, ['apply', ...files.flatMap((file) => ['-f', file])]);
  const { machines, autoscaler } = running.options;
  const size = autoscaler ? `0 to ${machines}` : machines;
  print(`applied a Secret, two MachineClasses and the MachineDeployment "${WORKERS}" with ${size} replica(s)`);
}

function isEmpty({ machines, nodes }: MachinesSnapshot): boolean {
  return machines.length === 0 && nodes.length === 0;
}

/** The end of `--once`: everything that was made must go again, the Nodes included. */
async function checkRemoval(running: Running, watch: MachineWatch): Promise<void> {
  print('deleting the MachineDeployment; every machine and Node must be removed…');
  await kubectl(running, ['delete', 'machinedeployment', WORKERS, '--wait=false']);
  await watch.until(isEmpty, deadline(running, 'the machines were not removed'));
  print('no machines and no Nodes are left');
}

/** As the administrator, for as long as the demo runs. */
async function watchMachines({ kubeconfig: file, stop }: Running): Promise<MachineWatch> {
  const clock = new SystemClock();
  const endpoint = await loadEndpoint({ kubeconfig: file, clock, env: process.env });
  const transport = new Transport({ endpoint, clock, userAgent: 'machinist-demo' });
  const tell = (machine: string, what: string): void => print(`  ${machine}  ${what}`);
  return MachineWatch.start(transport, clock, tell, stop.signal);
}

/** The demo's own signal, or one that says `what` after the demo's patience. */
function deadline({ stop, options }: Running, what: string): AbortSignal {
  if (!options.once) return stop.signal;
  const late = new AbortController();
  setTimeout(() => late.abort(new DemoError(`${what} within ${PATIENCE_MS / 60_000} minutes`)), PATIENCE_MS).unref();
  return AbortSignal.any([stop.signal, late.signal]);
}

function programPath({ connection }: ControlPlane, name: 'kubectl' | 'kubemark' | 'kwok'): string {
  const program = connection.programs[name];
  if (program === undefined) throw new DemoError(`${name} was not found; run npm run demo again to build it`);
  return program.path;
}

async function kubectl(running: Running, args: readonly string[]): Promise<void> {
  const { kubectl: program, kubeconfig: file, stop } = running;
  await runKubectl({ program, kubeconfig: file, signal: stop.signal }, args);
}
