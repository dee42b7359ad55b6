import { spawn } from 'node:child_process';
import path from 'node:path';

import { CONTRACT_CHECKS } from './contract-checks.ts';

/**
 * Everything that can be checked without running the product, side by side. The first failure, in this order, ends the check with its exit
 * code. `--without-tests` is for who runs all tests next.
 */
const root = path.resolve(import.meta.dirname, '../..');

const JEST = [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  'node_modules/jest/bin/jest.js',
  '--selectProjects=unit',
  '--runInBand',
  '--silent',
];
/** Tests of the sources themselves: any change may need another line there. */
const TESTS = ['hack/check/', 'hack/mutations/list.test.ts', 'test/simulation/known-defects/defects.test.ts'];

const checks: readonly { readonly name: string; readonly argv: readonly string[] }[] = [
  { name: 'format', argv: ['oxfmt', '--list-different'] },
  { name: 'types', argv: ['tsc', '--noEmit'] },
  { name: 'types of the status page', argv: ['tsc', '--noEmit', '-p', 'pkg/status-page/web'] },
  { name: 'lint and layers', argv: ['oxlint', '--type-aware', '--deny-warnings', '--format', 'stylish'] },
  { name: 'unused code', argv: ['knip', '--no-progress'] },
  { name: 'generated files', argv: ['node', 'hack/generate/main.ts', '--check'] },
  ...CONTRACT_CHECKS,
  ...(process.argv.includes('--without-tests')
    ? []
    : [{ name: 'names, texts and lists', argv: ['node', ...JEST, ...TESTS] }]),
];

/** Resolves with its exit code and all that it printed. */
function run(argv: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve, reject) => {
    const [program = '', ...rest] = argv;
    const stdio = ['ignore', 'pipe', 'pipe'] as const;
    const child = spawn(path.join(root, 'node_modules/.bin', program), rest, { cwd: root, stdio: [...stdio] });
    const output: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => output.push(text));
    }
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? 1, output: output.join('') }));
  });
}

const results = await Promise.all(checks.map(async (check) => ({ ...check, ...(await run(check.argv)) })));
for (const { name, argv, code, output } of results) {
  if (code !== 0) {
    process.stderr.write(output);
    console.error(`check "${name}" failed: ${argv.join(' ')}`);
    process.exit(code);
  }
  console.log(`ok: ${name}`);
}
