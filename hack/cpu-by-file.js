import { appendFileSync, readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
/** The file that gets a line for each test file, with seconds of CPU time, and of time; where /proc is. */
const LOG = process.env.MACHINIST_TEST_CPU;
const TICKS_A_SECOND = 100;

/** Begins to count for a test file; what it returns ends that, with a line: own, of the processes that it waited for, time, and path. */
export function countCPU(testFile) {
  if (LOG === undefined) return () => undefined;
  const before = now();
  return () => {
    const spent = now().map((value, i) => (value - before[i]).toFixed(1));
    appendFileSync(LOG, `${[...spent, path.relative(root, testFile)].join('\t')}\n`);
  };
}

function now() {
  const [, fields] = readFileSync('/proc/self/stat', 'utf8').split(') ');
  // From utime on: see proc_pid_stat(5).
  const [user, system, ofChildren, systemOfChildren] = fields.split(' ').slice(11).map(Number);
  const ticks = [user + system, ofChildren + systemOfChildren];
  return [...ticks.map((count) => count / TICKS_A_SECOND), performance.now() / 1000];
}
