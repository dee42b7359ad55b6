import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { etcdSocket } from '../../hack/control-plane/arguments.ts';
import type { Api } from '../../hack/control-plane/api.ts';
import { pkiDirectory } from '../../hack/control-plane/connection.ts';
import { type ControlPlane, startControlPlane } from '../../hack/control-plane/control-plane.ts';
import { pkiFiles } from '../../hack/control-plane/pki.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { PROGRAMS_VARIABLE, type IronCoreProgram } from '../../hack/ironcore/programs.ts';
import { POOL_LEASE_NAMESPACE } from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import { eventually } from '../expect/eventually.ts';

const GROUPS = ['compute', 'storage', 'networking', 'ipam', 'core'];
const SYSTEM = 'ironcore-system';
const PATIENCE = { timeoutMs: 180_000 };

/** What a machinebroker serves: Machines of a namespace, in one pool. */
export interface BrokerOptions {
  readonly namespace: string;
  readonly pool: string;
}

/** What a machinepoollet serves: a pool, by a runtime. */
export interface PoolletOptions {
  readonly pool: string;
  readonly address: string;
}

/** A cluster with IronCore's own API server and, where they are started, its other programs. */
export class OriginalIronCore implements AsyncDisposable {
  readonly plane: ControlPlane;
  readonly api: Api;
  readonly #folder: string;
  readonly #programs: string;
  readonly #children: ChildProcess[] = [];

  private constructor(plane: ControlPlane, folder: string, programs: string) {
    this.plane = plane;
    this.api = plane.connection.api();
    this.#folder = folder;
    this.#programs = programs;
  }

  static async start(): Promise<OriginalIronCore> {
    const programs = process.env[PROGRAMS_VARIABLE];
    if (programs === undefined)
      throw new Error('run `npm run test:ironcore -- --ironcore DIR`, which builds the programs');
    const folder = mkdtempSync(path.join(tmpdir(), 'ironcore-'));
    const directory = path.join(folder, 'plane');
    const pki = pkiFiles(pkiDirectory(directory));
    const plane = await startControlPlane({
      directory,
      extraArguments: {
        // By which an API server behind this one knows who asks.
        'kube-apiserver': [
          `--requestheader-client-ca-file=${pki.ca}`,
          '--requestheader-allowed-names=kube-apiserver-kubelet-client',
          '--requestheader-username-headers=X-Remote-User',
          '--requestheader-group-headers=X-Remote-Group',
          '--requestheader-extra-headers-prefix=X-Remote-Extra-',
          `--proxy-client-cert-file=${pki.kubeletClient}`,
          `--proxy-client-key-file=${pki.kubeletClientKey}`,
        ],
      },
    });
    const cluster = new OriginalIronCore(plane, folder, programs);
    try {
      await cluster.#serveApi(etcdSocket(directory));
      return cluster;
    } catch (err) {
      await cluster[Symbol.asyncDispose]();
      throw err;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.toReversed()) await end(child);
    await this.api.close();
    await this.plane.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Its scheduler, and all controllers that go with it. */
  startControllers(): ChildProcess {
    return this.#start('ironcore-controller-manager', [
      `--kubeconfig=${this.plane.kubeconfig}`,
      '--metrics-bind-address=0',
      '--health-probe-bind-address=0',
    ]);
  }

  /** Serves a pool by a runtime. */
  async startPoollet({ pool, address }: PoolletOptions): Promise<ChildProcess> {
    return this.#start('machinepoollet', [
      `--kubeconfig=${this.plane.kubeconfig}`,
      '--leader-elect=false',
      `--leader-election-kubeconfig=${this.plane.kubeconfig}`,
      `--machine-pool-name=${pool}`,
      `--provider-id=test://${pool}`,
      `--machine-runtime-endpoint=${address}`,
      `--address=127.0.0.1:${await freePort()}`,
      `--cert-dir=${path.join(this.#folder, pool)}`,
      '--insecure-disable-auth',
      '--metrics-bind-address=0',
      '--health-probe-bind-address=0',
    ]);
  }

  /** Hands machines on as Machines of this cluster. Resolves with the address where it speaks IRI. */
  async startBroker({ namespace, pool }: BrokerOptions): Promise<string> {
    const socket = path.join(this.#folder, 'broker.sock');
    this.#start('machinebroker', [
      `--kubeconfig=${this.plane.kubeconfig}`,
      `--namespace=${namespace}`,
      `--machine-pool-name=${pool}`,
      `--address=${socket}`,
      `--streaming-address=127.0.0.1:${await freePort()}`,
    ]);
    return `unix://${socket}`;
  }

  async #serveApi(etcd: string): Promise<void> {
    const port = await freePort();
    const { kubeconfig } = this.plane;
    this.#start('ironcore-apiserver', [
      `--etcd-servers=unix://${etcd}`,
      '--etcd-prefix=/registry/ironcore',
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${path.join(this.#folder, 'apiserver')}`,
      `--kubeconfig=${kubeconfig}`,
      `--authentication-kubeconfig=${kubeconfig}`,
      `--authorization-kubeconfig=${kubeconfig}`,
      '--enable-priority-and-fairness=false',
      '--audit-log-maxage=0',
    ]);
    for (const name of [SYSTEM, POOL_LEASE_NAMESPACE]) {
      await this.api.send('POST', '/api/v1/namespaces', { metadata: { name } });
    }
    await this.api.send('POST', `/api/v1/namespaces/${SYSTEM}/services`, {
      metadata: { name: 'apiserver' },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });
    for (const group of GROUPS) {
      await this.api.send('POST', '/apis/apiregistration.k8s.io/v1/apiservices', {
        metadata: { name: `v1alpha1.${group}.ironcore.dev` },
        spec: {
          group: `${group}.ironcore.dev`,
          version: 'v1alpha1',
          service: { namespace: SYSTEM, name: 'apiserver', port },
          insecureSkipTLSVerify: true,
          groupPriorityMinimum: 2_000,
          versionPriority: 100,
        },
      });
    }
    for (const group of GROUPS) {
      const look = (): Promise<unknown> => this.api.send('GET', `/apis/${group}.ironcore.dev/v1alpha1`);
      await eventually(look, { ...PATIENCE, describe: `IronCore's API server to serve ${group}.ironcore.dev` });
    }
  }

  #start(program: IronCoreProgram, args: readonly string[]): ChildProcess {
    const log = openSync(path.join(process.env['MACHINIST_TEST_IRONCORE_LOGS'] ?? this.#folder, `${program}.log`), 'a');
    const child = spawn(path.join(this.#programs, program), args, {
      stdio: ['ignore', log, log],
      env: { PATH: process.env['PATH'], HOME: this.#folder },
    });
    this.#children.push(child);
    return child;
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
