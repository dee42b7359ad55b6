import { spawn } from 'node:child_process';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** Each loads all that it needs to work, and then ends because it is told of no cluster. */
const PROGRAMS = [
  ['cmd/machinist/main.ts', 'run', '--control-kubeconfig=/dev/null', '--target-kubeconfig=/dev/null'],
  ['cmd/sim-driver/main.ts', '--kubeconfig=/dev/null'],
];

/**
 * Runs the programs that tests start once to their end, so that each later process finds its code compiled (NODE_COMPILE_CACHE, set by
 * the bootstrap). A process that is killed keeps nothing, and tests mostly kill. How they end does not matter here.
 */
export async function warmCompileCache(): Promise<void> {
  await Promise.all(
    PROGRAMS.map(
      ([program = '', ...args]) =>
        new Promise<void>((resolve) => {
          const child = spawn(process.execPath, [path.join(ROOT, program), ...args], { stdio: 'ignore' });
          child.once('error', () => resolve());
          child.once('exit', () => resolve());
        }),
    ),
  );
}
