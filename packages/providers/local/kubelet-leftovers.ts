import { existsSync, readFileSync, rmSync } from 'node:fs';

/**
 * The program makes its root directory and the socket of its container runtime itself, always in /tmp and under a random number, whatever
 * TMPDIR says; its log is the only place that tells which.
 */
const LEFTOVER = /\/tmp\/(?:hollow-kubelet\.\d+(?!\d)|kubelet_remote_\d+\.sock)/g;

/** Makes the program log its socket too. */
export const LOG_SOCKET = '--vmodule=remote_runtime=3';

/** The root directories and sockets that a kubelet's log tells of, each once. */
export function kubeletLeftoversIn(log: string): readonly string[] {
  return [...new Set(log.match(LEFTOVER))];
}

/** Removes what the kubelets that wrote these logs left in /tmp; for machines whose process has ended. */
export function removeKubeletLeftovers(logFiles: readonly string[]): void {
  for (const file of logFiles.filter((path) => existsSync(path))) {
    for (const path of kubeletLeftoversIn(readFileSync(file, 'utf8'))) rmSync(path, { recursive: true, force: true });
  }
}
