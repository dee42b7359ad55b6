import { readdirSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';

import { driverContractFaults, driverContractFiles } from './driver-contract.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const GENERATED = 'pkg/driver/grpc/gen';

test('the driver contract keeps the rules of buf', async () => {
  expect(await driverContractFaults()).toEqual([]);
}, 30_000);

test('the folder of the generated contract holds nothing else', async () => {
  const files = await driverContractFiles();

  const have = readdirSync(path.join(ROOT, GENERATED), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(ROOT, path.join(entry.parentPath, entry.name)));

  expect(have.toSorted()).toEqual([...files.keys()].toSorted());
}, 30_000);
