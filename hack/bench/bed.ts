import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { ControlClient } from '../../test/cloud/control-client.ts';
import type { Api } from '../control-plane/api.ts';
import { applyManifests, parseManifests, readManifests } from '../control-plane/apply.ts';
import type { Connection } from '../control-plane/connection.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { type Identity, writeKubeconfig } from '../control-plane/kubeconfig.ts';
import { onEnd } from '../control-plane/on-end.ts';
import { freePort } from '../control-plane/ports.ts';
import { LeaseGaps } from './lease-gaps.ts';
import { type Launch, type Program, startProgram } from './programs.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** Lets a benchmark of an hour be one. */
const TOKEN_SECONDS = 24 * 3_600;

/** Whose credentials the manager has: a ServiceAccount's token as in a cluster, or what the demo gives it, a user's. */
export type Credentials = 'service-account' | 'user';

/** How a bed is made. */
export interface BedOptions {
  /** Folder with compiled programs; the sources otherwise. */
  readonly built?: string | undefined;
  readonly managerNodeFlags?: readonly string[];
  readonly driverNodeFlags?: readonly string[];
  /** Further flags of the manager. */
  readonly managerFlags?: readonly string[];
  readonly credentials?: Credentials;
  /** Where the manager reaches the API server of this URL; there otherwise. */
  readonly managerURL?: (url: string) => Promise<string>;
  /** Folder for logs; a new one otherwise. */
  readonly logs?: string | undefined;
}

/** A real control plane, the simulated cloud (create 0.2 s, join 0.5 s, delete 0.2 s) and the manager, a process each, under measurement. */
export interface Bed extends AsyncDisposable {
  readonly api: Api;
  readonly leases: LeaseGaps;
  readonly cloud: ControlClient;
  /** Where the manager serves its metrics. */
  readonly port: number;
  /** Processes by name, as they are now. */
  readonly pids: Readonly<Record<'manager' | 'driver' | 'kube-apiserver' | 'etcd', number>>;
  readonly logs: string;
  /** Where the manager's event loop tells how late it was, a line each second. */
  readonly loopDelayFile: string;
  /** Ends the manager, and starts another one. */
  restartManager(): Promise<void>;
}

/** Flags of the Node of the manager, as the manifests have them, and of drivers, as their images do. */
export const MANIFEST_FLAGS = '--max-semi-space-size=8 --max-old-space-size=384';
/** Of layout cells. */
export const CELLS_FLAGS = `${MANIFEST_FLAGS} --v8-pool-size=1`;
export const DRIVER_IMAGE_FLAGS = '--max-semi-space-size=2 --max-old-space-size=192';

/** Starts all of it, with the definitions and the roles that are shipped. Resolves when the cloud answers; the manager may still start. */
export async function startBed(options: BedOptions): Promise<Bed> {
  const { logs = mkdtempSync(path.join(tmpdir(), 'machinist-bench-')), credentials = 'service-account' } = options;
  mkdirSync(logs, { recursive: true });
  await using opening = new AsyncDisposableStack();
  const plane = opening.use(await startControlPlane({ controllerManager: false, log: (line) => console.error(line) }));
  const programs = new Set<Program>();
  opening.use(
    onEnd(() => {
      for (const program of programs) void program.stop();
      plane.run.endNow();
    }),
  );
  const { connection } = plane;
  const api = opening.adopt(connection.api(), (one) => one.close());
  await applyManifests(api, parseManifests(readFileSync(path.join(ROOT, 'deploy/namespace.yaml'), 'utf8')));
  await applyManifests(api, readManifests(path.join(ROOT, 'crds')));
  await applyManifests(api, readManifests(path.join(ROOT, 'deploy/rbac')));

  const sockets = mkdtempSync(path.join(tmpdir(), 'machinist-bench-'));
  opening.defer(() => rmSync(sockets, { recursive: true, force: true }));
  const [address, control] = [path.join(sockets, 'driver.sock'), path.join(sockets, 'control.sock')];
  const launch = (nodeFlags: readonly string[]): Launch =>
    options.built === undefined
      ? { root: ROOT, extension: 'ts', nodeFlags, logs }
      : { root: path.resolve(options.built), extension: 'js', nodeFlags, logs };
  const driver = startProgram(launch(options.driverNodeFlags ?? []), 'sim-driver', [
    `--address=unix://${address}`,
    `--control=unix://${control}`,
    `--kubeconfig=${await connection.kubeconfigFor({ user: 'machinist-sim-driver' })}`,
    '--pod-stop-time=0s',
  ]);
  programs.add(driver);
  opening.defer(() => driver.stop());
  const cloud = opening.use(new ControlClient(control));
  await cloud.answers();

  const loopDelayFile = path.join(logs, 'loop-delay');
  process.env['LOOP_DELAY_FILE'] = loopDelayFile;
  const { ca, url } = connection;
  const own = path.join(sockets, 'manager.yaml');
  const reached = options.managerURL === undefined ? url : await options.managerURL(url);
  writeKubeconfig(own, { url: reached, ca, identity: await identityOf(connection, api, credentials) });
  const port = await freePort();
  const nodeFlags = [
    ...(options.managerNodeFlags ?? []),
    `--import=${path.join(import.meta.dirname, 'loop-delay.js')}`,
  ];
  const startManager = (): Program =>
    startProgram(launch(nodeFlags), 'machinist', [
      'run',
      '--namespace=machinist',
      `--control-kubeconfig=${own}`,
      `--target-kubeconfig=${own}`,
      `--driver=sim=unix://${address}`,
      '--address=127.0.0.1',
      `--port=${port}`,
      ...(options.managerFlags ?? []),
    ]);
  let manager = startManager();
  programs.add(manager);
  opening.defer(() => manager.stop());
  const others = { driver: driver.pid, 'kube-apiserver': plane.apiserver.pid ?? 0, etcd: plane.etcd.pid ?? 0 };
  const leases = opening.use(new LeaseGaps(connection));
  const disposables = opening.move();
  return {
    api,
    leases,
    cloud,
    port,
    logs,
    loopDelayFile,
    get pids() {
      return { manager: manager.pid, ...others };
    },
    async restartManager() {
      await manager.stop();
      programs.delete(manager);
      manager = startManager();
      programs.add(manager);
    },
    [Symbol.asyncDispose]: () => disposables.disposeAsync(),
  };
}

async function identityOf(connection: Connection, api: Api, credentials: Credentials): Promise<Identity> {
  if (credentials === 'user') return connection.identityFor({ user: 'machinist' });
  const accounts = '/api/v1/namespaces/machinist/serviceaccounts';
  await api.send('POST', accounts, { metadata: { name: 'machinist' } });
  const { status } = await api.send<{ status: { token: string } }>('POST', `${accounts}/machinist/token`, {
    spec: { expirationSeconds: TOKEN_SECONDS },
  });
  return { token: status.token };
}
