import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { applyManifests, parseManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import { Component } from '../../hack/control-plane/component.ts';
import { startControlPlane, type ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { kubeconfig, writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { machines, nodes } from '../../pkg/kube/client/resource.ts';
import { applyCrds, type CrdSet } from '../env/crds.ts';
import { KubeSession } from '../integration/kube-session.ts';
import { LocalMachines } from './local-machines.ts';
import { NAMESPACE } from './manifests.ts';
import { feed } from '../processes/feed.ts';

const ROOT = resolve(import.meta.dirname, '../..');
/** Longer than any command is told to wait. */
const KUBECTL_TIMEOUT_MS = 180_000;
const TAIL_LINES = 80;

/** What is installed. */
export interface InstallationOptions {
  /** `one` process for everything (the default), or the original's two, each with its own flags and roles. */
  readonly layout?: 'one' | 'two';
  /** Whose CRDs; those of this project by default. */
  readonly crds?: CrdSet;
}

/** What each layout runs, and the files of deploy/rbac that it needs. */
const LAYOUTS = {
  one: { programs: ['machinist'], roles: ['control', 'control-identity', 'target', 'local-driver'] },
  two: {
    programs: ['machine-controller-manager', 'machine-controller'],
    roles: [
      'control-manager',
      'control-machine-controller',
      'control-identity',
      'target-manager',
      'target',
      'local-driver',
    ],
  },
} as const;

/**
 * Everything as a user would install it, on a control plane of its own: CRDs, the shipped roles, the local driver, whose machines
 * are real kubelets, and the manager as the user that the roles bind. All of them are processes; disposing ends them.
 */
export class Installation implements AsyncDisposable {
  readonly plane: ControlPlane;
  /** The administrator, with a client of our own. */
  readonly admin: KubeSession;
  /** What the provider has. */
  readonly vms: LocalMachines;
  /** Programs in the order of their start. */
  readonly #programs: Component[] = [];
  readonly #undo: (() => Promise<void> | void)[] = [];
  readonly #kubeconfig: string;

  private constructor(plane: ControlPlane) {
    this.plane = plane;
    this.admin = new KubeSession(plane.connection);
    this.vms = new LocalMachines(join(plane.directory, 'machines'));
    this.#kubeconfig = join(plane.directory, 'kubectl.yaml');
    const { url, connection } = plane;
    writeKubeconfig(this.#kubeconfig, { url, ca: connection.ca, identity: connection.admin, namespace: NAMESPACE });
  }

  /** Resolves when the manager leads and its driver serves. Takes about 10 s. */
  static async start(options: InstallationOptions = {}): Promise<Installation> {
    const plane = await startControlPlane({ programs: ['kubectl', 'kubemark'] });
    const installation = new Installation(plane);
    try {
      await installation.#install(options);
      return installation;
    } catch (err) {
      process.stderr.write(installation.logs());
      await installation[Symbol.asyncDispose]();
      throw err;
    }
  }

  /** The user data with which a kubelet joins this cluster; the manager fills in the token. */
  get userData(): string {
    const { url, connection } = this.plane;
    return kubeconfig({ url, ca: connection.ca, identity: { token: '<<BOOTSTRAP_TOKEN>>' } });
  }

  /** Runs kubectl in the namespace `machinist` and returns what it printed. Throws with what it complained about. */
  readonly kubectl = (...args: readonly string[]): Promise<string> => this.#kubectl(args, '');

  /** `kubectl apply` of these objects. */
  async apply(...items: readonly Manifest[]): Promise<void> {
    await this.#kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  }

  /** All Machines, read live. */
  async machines(): Promise<readonly Machine[]> {
    return (await this.admin.reader.list(machines, { namespace: NAMESPACE })).items;
  }

  /** All Nodes, read live. */
  async nodes(): Promise<readonly Node[]> {
    return (await this.admin.reader.list(nodes)).items;
  }

  /** The last lines of the driver and of the manager. */
  logs(): string {
    return this.#programs.map(({ name, logFile }) => `--- ${name}\n${tailOf(logFile)}\n`).join('');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const step of this.#undo.toReversed()) await step();
    await this.admin[Symbol.asyncDispose]();
    await this.plane.stop();
  }

  async #install({ layout = 'one', crds }: InstallationOptions): Promise<void> {
    const { programs, roles } = LAYOUTS[layout];
    await applyCrds(this.plane.connection, crds);
    const files = [
      'deploy/namespace.yaml',
      'deploy/base/service-account.yaml',
      ...roles.map((role) => `deploy/rbac/${role}.yaml`),
    ];
    const api = this.plane.connection.api();
    await applyManifests(
      api,
      files.flatMap((file) => parseManifests(readFileSync(join(ROOT, file), 'utf8'))),
    );
    await api.close();
    const address = await this.#startDriver();
    for (const program of programs) await this.#startManager(program, address);
  }

  async #startDriver(): Promise<string> {
    const state = join(this.plane.directory, 'machines');
    const address = `unix://${join(this.plane.directory, 'driver.sock')}`;
    this.#undo.push(() => this.vms.endAll());
    this.#undo.push(this.vms.recordIn(this.plane.run));
    const args = ['--address', address, '--state-directory', state, '--kubelet-binary', this.#program('kubemark')];
    await this.#start('local-driver', args, (log) => Promise.resolve(log().includes('"msg":"serving"')));
    return address;
  }

  async #startManager(program: (typeof LAYOUTS)['one' | 'two']['programs'][number], driver: string): Promise<void> {
    const own = await this.plane.connection.kubeconfigFor({ user: 'machinist' });
    const port = await freePort();
    const args = [
      ...(program === 'machinist' ? ['run'] : []),
      `--namespace=${NAMESPACE}`,
      `--control-kubeconfig=${own}`,
      `--target-kubeconfig=${own}`,
      `--driver=local=${driver}`,
      '--address=127.0.0.1',
      `--port=${port}`,
      '--machine-safety-grace=1s',
    ];
    await this.#start(program, args, async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
  }

  async #start(name: string, args: readonly string[], isReady: (log: () => string) => Promise<boolean>): Promise<void> {
    const { directory, run } = this.plane;
    const logFile = join(directory, `${name}.log`);
    const program = new Component({
      name,
      program: process.execPath,
      args: [join(ROOT, `cmd/${name}/main.ts`), ...args],
      directory,
      logFile,
      run,
      isReady: () => isReady(() => readFileSync(logFile, 'utf8')),
      log: (line) => process.stderr.write(`${line}\n`),
    });
    this.#programs.push(program);
    this.#undo.push(() => program.stop());
    await program.start();
  }

  #program(name: 'kubectl' | 'kubemark'): string {
    const program = this.plane.connection.programs[name];
    if (program === undefined) throw new Error(`${name} was not found`);
    return program.path;
  }

  async #kubectl(args: readonly string[], input: string): Promise<string> {
    const all = ['--kubeconfig', this.#kubeconfig, ...args];
    const running = promisify(execFile)(this.#program('kubectl'), all, { timeout: KUBECTL_TIMEOUT_MS });
    feed(running.child, input);
    try {
      return (await running).stdout;
    } catch (err) {
      const said = err instanceof Error && 'stderr' in err ? String(err.stderr).trim() : String(err);
      throw new Error(`kubectl ${args.join(' ')}: ${said}`, { cause: err });
    }
  }
}

function tailOf(path: string): string {
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
}
