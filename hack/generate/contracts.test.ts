import { readdirSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { contractFiles } from './contracts.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const GENERATED = ['pkg/driver/grpc/gen', 'pkg/autoscaler/gen', 'pkg/worlds/ironcore/runtime/gen'];

test('the folders of the generated contracts hold nothing else', async () => {
  const files = await contractFiles();

  const have = GENERATED.flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, withFileTypes: true }),
  )
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(ROOT, path.join(entry.parentPath, entry.name)));

  expect(have.toSorted()).toEqual([...files.keys()].toSorted());
});
