import { spawn } from 'node:child_process';
import { cp, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { bundle } from '../image/bundle.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** No folder can be made below a device. */
const NOWHERE = ['--address=unix:///dev/null/none', '--state-directory=/dev/null/none'];

/** Those that tests start by the hundred. Each loads all that it needs to work, and then ends because it is told of no cluster. */
const PROGRAMS = [
  { program: 'machinist', args: ['run', '--control-kubeconfig=/dev/null', '--target-kubeconfig=/dev/null'] },
  { program: 'sim-driver', args: ['--kubeconfig=/dev/null'] },
  { program: 'openstack-driver', args: NOWHERE },
  { program: 'kwok-driver', args: [...NOWHERE, '--kubeconfig=/dev/null'] },
  { program: 'cluster-api-driver', args: [...NOWHERE, '--kubeconfig=/dev/null'] },
  { program: 'ironcore-driver', args: NOWHERE },
];

/** The environment of a program that lies in `folder`: Node keeps what it made of its code beside it. */
export function bundledEnv(folder: string): Record<string, string> {
  return { NODE_COMPILE_CACHE: path.join(folder, 'compile-cache') };
}

/**
 * Bundles the programs that tests start into `folder`, as the image holds them: `cmd/<program>/main.js` loads in half of the CPU time. Each is
 * run to its end once, so that later processes find its code compiled: a process that is killed keeps nothing, and tests mostly kill. How
 * they end does not matter here.
 */
export async function bundlePrograms(folder: string): Promise<void> {
  await bundle(
    PROGRAMS.map(({ program }) => program),
    folder,
  );
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }\n');
  // What `machinist try` creates.
  await cp(path.join(ROOT, 'crds'), path.join(folder, 'crds'), { recursive: true });
  await Promise.all(PROGRAMS.map(({ program, args }) => runToItsEnd(folder, program, args)));
}

function runToItsEnd(folder: string, program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    const file = path.join(folder, 'cmd', program, 'main.js');
    const child = spawn(process.execPath, [file, ...args], {
      stdio: 'ignore',
      env: { ...process.env, ...bundledEnv(folder) },
    });
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
}
