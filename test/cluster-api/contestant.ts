import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { readManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { Component } from '../../hack/control-plane/component.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import { openRun } from '../../hack/control-plane/ledger.ts';
import { freePort } from '../../hack/control-plane/ports.ts';
import { contractLabel } from '../../pkg/worlds/cluster-api/api/contract.ts';

const execute = promisify(execFile);

/** Where Cluster API's definitions are in its modules. */
const DEFINITIONS = {
  'sigs.k8s.io/cluster-api': ['core/config/crd/bases', 'bootstrap/kubeadm/config/crd/bases'],
  'sigs.k8s.io/cluster-api/test': ['infrastructure/docker/config/crd/bases'],
} as const;

/** Kinds of Cluster API that the tests of its core need. */
const CORE_KINDS = [
  'Cluster',
  'Machine',
  'MachineSet',
  'MachineDeployment',
  'MachineDrainRule',
  'MachinePool',
  'ClusterClass',
];
/** Of its provider in memory. */
export const PROVIDER_KINDS = ['DevCluster', 'DevMachine', 'DevMachineTemplate'];

/** Names of clusters in memory take a port each; so many are used. */
const PORTS = 8;

interface Definition extends Manifest {
  readonly spec: { readonly names: { readonly kind: string } };
}

/**
 * Cluster API's definitions of these kinds as its modules have them, with the labels of contracts that its release adds. They are downloaded if
 * they are not there: those who only run a program that was built before may have no source of it.
 */
export async function definitions(
  kinds: readonly string[] = [...CORE_KINDS, ...PROVIDER_KINDS],
): Promise<readonly Manifest[]> {
  const modules = Object.keys(DEFINITIONS);
  const { stdout } = await execute('go', ['mod', 'download', '-json', ...modules], { cwd: import.meta.dirname });
  const found = parseObjects(stdout) as readonly { readonly Path: keyof typeof DEFINITIONS; readonly Dir: string }[];
  return found.flatMap(({ Path, Dir }) =>
    DEFINITIONS[Path]
      .flatMap((folder) => readManifests(path.join(Dir, folder)) as Definition[])
      .filter(({ spec }) => kinds.includes(spec.names.kind))
      .map((definition) => labelled(definition)),
  );
}

/** Objects one after the other, as Go prints them. */
function parseObjects(text: string): readonly unknown[] {
  return text
    .split(/^(?=\{)/m)
    .filter((one) => one.trim() !== '')
    .map((one) => JSON.parse(one) as unknown);
}

function labelled(definition: Definition): Manifest {
  const labels = { [contractLabel('v1beta2')]: 'v1beta2', [contractLabel('v1beta1')]: 'v1beta1' };
  return { ...definition, metadata: { ...definition.metadata, labels } as Manifest['metadata'] };
}

/** How the published reconcilers are run. */
export interface ContestantOptions {
  /** The namespace in which those of Cluster and Machine run too. */
  readonly coreIn?: string;
  /** The namespace in which kubeadm's bootstrap provider runs too. */
  readonly kubeadmIn?: string;
}

/** Cluster API's own reconcilers as a process; with all rights. Resolves when they work. */
export async function startContestant(
  connection: Connection,
  { coreIn, kubeadmIn }: ContestantOptions = {},
): Promise<AsyncDisposable> {
  const { path: program } = await resolveProgram('cluster-api');
  const directory = mkdtempSync(path.join(tmpdir(), 'machinist-cluster-api-'));
  const run = openRun(directory);
  const logFile = path.join(directory, 'cluster-api.log');
  const firstPort = await freePort();
  const process = new Component({
    name: 'cluster-api',
    program,
    args: [
      `--kubeconfig=${connection.kubeconfig}`,
      `--first-port=${firstPort}`,
      `--last-port=${firstPort + PORTS}`,
      `--debug-port=${await freePort()}`,
      ...(coreIn === undefined ? [] : [`--core-namespace=${coreIn}`]),
      ...(kubeadmIn === undefined ? [] : [`--kubeadm-namespace=${kubeadmIn}`]),
    ],
    directory,
    logFile,
    run,
    isReady: () => Promise.resolve(existsSync(logFile) && /^ready$/m.test(readFileSync(logFile, 'utf8'))),
    log: () => undefined,
  });
  await process.start();
  return {
    async [Symbol.asyncDispose]() {
      await process.stop('SIGKILL');
      await run.end();
    },
  };
}
