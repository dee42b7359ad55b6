import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { CONTRACT_CHECKS } from './contract-checks.ts';

const execute = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../..');
const CONTRACT = 'proto/machine/driver/v1/driver.proto';

let copy: string;
beforeAll(async () => {
  copy = await mkdtemp(path.join(tmpdir(), 'contract-'));
  for (const part of ['buf.yaml', 'proto']) await cp(path.join(ROOT, part), path.join(copy, part), { recursive: true });
  // As if it had just been released.
  await cp(path.join(ROOT, 'proto/machine'), path.join(copy, 'hack/check/released/machine'), { recursive: true });
});
afterAll(async () => {
  await rm(copy, { recursive: true, force: true });
});

/** Names of the checks that fail in the copy, and all that they say. */
async function failing(): Promise<{ readonly names: readonly string[]; readonly output: string }> {
  const names: string[] = [];
  const outputs: string[] = [];
  for (const { name, argv } of CONTRACT_CHECKS) {
    const [program, ...args] = argv;
    try {
      await execute(path.join(ROOT, 'node_modules/.bin', program), args, { cwd: copy });
    } catch (err) {
      names.push(name);
      outputs.push((err as { stdout?: string }).stdout ?? ''); // execFile's error carries the output
    }
  }
  return { names, output: outputs.join('') };
}

const BREAKING = 'driver contract of the last release';
test.each([
  { what: 'the contract as it is', from: '', to: '', names: [], says: '' },
  {
    what: 'a field with another number',
    from: 'string node_name = 2;',
    to: 'string node_name = 20;',
    names: [BREAKING],
    says: 'node_name',
  },
  {
    what: 'a field whose name is written otherwise',
    from: 'string node_name = 2;',
    to: 'string nodeName = 2;',
    names: ['style of the contracts', BREAKING],
    says: 'nodeName',
  },
  {
    what: 'a field that takes a reserved number',
    from: 'reserved 5 to 9;',
    to: 'bool powered = 5;\n  reserved 6 to 9;',
    names: [],
    says: '',
  },
])(
  'of $what fail: $names',
  async ({ from, to, names, says }) => {
    const text = await readFile(path.join(ROOT, CONTRACT), 'utf8');
    expect(text).toContain(from);
    await writeFile(path.join(copy, CONTRACT), text.replace(from, to));

    const found = await failing();

    expect(found.names).toEqual(names);
    expect(found.output).toContain(says);
  },
  30_000,
);
