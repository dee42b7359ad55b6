import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { generatedFiles } from './files.ts';

/** Writes all generated files; with `--check` writes nothing, names those that are not current, and fails if there are any. */
const root = path.resolve(import.meta.dirname, '../..');
const isCheck = process.argv.includes('--check');

const stale: string[] = [];
for (const [file, want] of await generatedFiles()) {
  const target = path.join(root, file);
  const have = await readFile(target, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (have === want) continue;
  stale.push(file);
  if (isCheck) continue;
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, want);
}

if (isCheck && stale.length > 0) {
  console.error(`not current: ${stale.join(', ')}\nrun: npm run generate`);
  process.exit(1);
}
for (const file of stale) console.log(`wrote ${file}`);
