import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Exported by several modules, as the same part of different wholes. */
const PARTS: Readonly<Record<string, string>> = {
  CREATION: 'stages of a creation, and conformance rules of it',
  Collaborators: 'what the steps of a controller are made with',
  DELETION: 'stages of a deletion, and conformance rules of it',
  claim: 'the step that claims',
  parseProviderSpec: 'of each driver',
  release: 'what releases what was claimed',
  revisionOf: 'of a MachineSet, and of a replica',
  status: 'the step that writes the status',
  text: 'of a flag, and of a providerSpec',
  troublesOf: 'of a MachineDeployment, and of a cell',
};

test('a name is exported by one module of pkg, apart from the same part of different wholes', async () => {
  const all = await readdir(path.join(ROOT, 'pkg'), { recursive: true });
  const modules = all.filter((file) => file.endsWith('.ts') && !/\.test\.ts$|\/gen\/|\/web\//.test(file));
  const exports = new Map<string, string[]>();
  for (const file of modules) {
    const source = await readFile(path.join(ROOT, 'pkg', file), 'utf8');
    for (const [, name = ''] of source.matchAll(
      /^export (?:abstract |async )?(?:class|const|function|interface|type)\*? (\w+)/gm,
    ))
      exports.set(name, [...(exports.get(name) ?? []), file]);
  }
  const several = [...exports].filter(([, files]) => new Set(files).size > 1);

  expect(several.filter(([name]) => !(name in PARTS))).toEqual([]);
  expect(Object.keys(PARTS).filter((name) => !several.some(([one]) => one === name))).toEqual([]);
  expect(exports.size).toBeGreaterThan(2_000);
});
