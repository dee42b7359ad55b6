import { existsSync, readFileSync, rmSync } from 'node:fs';

/**
 * The program makes its root directory itself, always in /tmp and under a random number, whatever TMPDIR says; its log is the only
 * place that tells which.
 */
const ROOT = /\/tmp\/hollow-kubelet\.\d+(?!\d)/g;

/** The root directories that a kubelet's log tells of, each once. */
export function kubeletRootsIn(log: string): readonly string[] {
  return [...new Set(log.match(ROOT))];
}

/** Removes the root directories of the kubelets that wrote these logs; for machines whose process has ended. */
export function removeKubeletRoots(logFiles: readonly string[]): void {
  for (const file of logFiles.filter((path) => existsSync(path))) {
    for (const root of kubeletRootsIn(readFileSync(file, 'utf8'))) rmSync(root, { recursive: true, force: true });
  }
}
