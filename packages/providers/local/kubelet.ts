import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { MACHINE_NAME_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Clock } from '../../../pkg/base/clock/clock.ts';
import { hasErrno } from '../../../pkg/driver/errno.ts';
import { identityOf, isAlive, readProc, type ProcessIdentity } from '../../../pkg/drivers/process-identity.ts';
import type { LocalProviderSpec } from './provider-spec.ts';
import type { LocalVM } from './vm.ts';
import { LOG_SOCKET } from './kubelet-leftovers.ts';
import { LOG_FILE } from './log-files.ts';

const GONE_DEADLINE_MS = 10_000;
const POLL_MS = 10;

export interface KubeletStart {
  /** The program kubemark: the real kubelet over a container runtime in memory. */
  readonly binary: string;
  readonly folder: string;
  readonly vm: LocalVM;
  readonly spec: LocalProviderSpec;
  readonly bootstrapKubeconfig: string;
}

/**
 * Starts a machine's kubelet in a session of its own, so that it outlives the driver and any signal to it. Resolves when the
 * process exists; whether it joins is its own affair. Rejects when the program cannot be started.
 */
export async function startKubelet(start: KubeletStart): Promise<ProcessIdentity> {
  const { binary, folder } = start;
  mkdirSync(join(folder, 'tmp'), { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'bootstrap-kubeconfig'), start.bootstrapKubeconfig, { mode: 0o600 });
  // Appending, so that the log can be cut while the kubelet writes it.
  const log = openSync(join(folder, LOG_FILE), 'a', 0o600);
  try {
    const child = spawn(binary, argumentsOf(start), {
      cwd: folder,
      detached: true,
      stdio: ['ignore', log, log],
      // Its root directory is made in the temporary one: it goes with the machine's folder.
      env: { TMPDIR: join(folder, 'tmp'), HOME: folder, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    });
    await once(child, 'spawn');
    child.unref();
    const identity = identityOf(child.pid ?? 0);
    if (identity === undefined) throw new Error('the kubelet exited immediately');
    return identity;
  } finally {
    closeSync(log);
  }
}

/** Ends exactly this kubelet, and resolves when it has gone. Rejects when it will not go. */
export async function endKubelet(process_: ProcessIdentity, clock: Clock): Promise<void> {
  const untilMs = clock.monotonicMs() + GONE_DEADLINE_MS;
  while (isAlive(process_)) {
    // A machine that is deleted loses its power. It leads its own process group.
    killGroup(process_.pid);
    if (clock.monotonicMs() > untilMs) throw new Error(`kubelet ${process_.pid} does not exit`);
    await clock.sleep(POLL_MS, new AbortController().signal);
  }
}

/**
 * The kubelet that runs from a folder, found by its command line: the driver may have been killed after the start and before
 * the pid was written down.
 */
export function findKubelet(folder: string): ProcessIdentity | undefined {
  const wanted = certDirectoryArgument(folder);
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const commandLine = readProc(`/proc/${name}/cmdline`)?.split('\0');
    if (commandLine?.includes(wanted) === true) return identityOf(Number(name));
  }
  return undefined;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (err) {
    if (!hasErrno(err, 'ESRCH')) throw err;
  }
}

function argumentsOf({ folder, vm, spec }: KubeletStart): string[] {
  // Its provider id is one that kubemark makes up: by this it is known from the moment it joins, also after its machine has gone.
  const shown = { ...spec.nodeLabels, [MACHINE_NAME_LABEL]: vm.machineName };
  const labels = Object.entries(shown).map(([key, value]) => `${key}=${value}`);
  return [
    '--morph=kubelet',
    `--name=${vm.machineName}`,
    `--bootstrap-kubeconfig=${join(folder, 'bootstrap-kubeconfig')}`,
    `--kubeconfig=${join(folder, 'kubeconfig')}`,
    certDirectoryArgument(folder),
    `--kubelet-port=${vm.kubeletPort}`,
    `--kubelet-read-only-port=${vm.readOnlyPort}`,
    `--max-pods=${spec.maxPods}`,
    '--use-host-image-service=false',
    LOG_SOCKET,
    `--node-labels=${labels.join(',')}`,
    ...(spec.taints.length === 0 ? [] : [`--register-with-taints=${spec.taints.join(',')}`]),
  ];
}

/** The argument by which a machine's kubelet is told from all other processes. */
function certDirectoryArgument(folder: string): string {
  return `--cert-dir=${join(folder, 'pki')}`;
}
