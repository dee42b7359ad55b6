import { spawn } from 'node:child_process';
import path from 'node:path';

/** Everything that can be checked without running the product. The first failure ends the check with its exit code. */
const root = path.resolve(import.meta.dirname, '../..');

const checks: readonly { readonly name: string; readonly argv: readonly string[] }[] = [
  { name: 'format', argv: ['prettier', '--check', '--log-level', 'warn', '.'] },
  { name: 'types', argv: ['tsc', '--noEmit'] },
  { name: 'lint and layers', argv: ['oxlint', '--type-aware', '--deny-warnings', '--format', 'stylish'] },
  { name: 'unused code', argv: ['knip', '--no-progress'] },
  { name: 'generated files', argv: ['node', 'hack/generate/main.ts', '--check'] },
];

function run(argv: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const [program = '', ...rest] = argv;
    const child = spawn(path.join(root, 'node_modules/.bin', program), rest, { cwd: root, stdio: 'inherit' });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

for (const check of checks) {
  const code = await run(check.argv);
  if (code !== 0) {
    console.error(`check "${check.name}" failed: ${check.argv.join(' ')}`);
    process.exit(code);
  }
  console.log(`ok: ${check.name}`);
}
