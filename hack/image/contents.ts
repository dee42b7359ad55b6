import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { cp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

import { BUILT_PACKAGE, CONTRACT, copyExample, LANGUAGES } from '../../cmd/machinist/driver/scaffold.ts';
import { copyLibrary, SHIM_SOURCE } from '../../cmd/machinist/driver/from-mcm-provider.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { buildDriverPackage } from '../driver-package/build.ts';
import { bundle } from './bundle.ts';
import { licencesOf, readPackage } from './licences.ts';
import { type Bill, reduceTo } from './sbom.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/**
 * Writes programs of cmd/ to an empty folder, with what they need: nothing is installed beside them. There are also the licences of the
 * packages that went in, and their list (CycloneDX). Resolves with the number of packages.
 */
export async function writeContents(folder: string, programs: readonly string[], target?: string): Promise<number> {
  await rm(folder, { recursive: true, force: true });
  if (programs.includes('machinist')) {
    await putScaffolds(folder);
    await putDefinitions(folder);
  }
  const folders = await bundle(programs, path.resolve(folder), target);
  const packages = await Promise.all(folders.map((one) => readPackage(path.join(ROOT, one))));
  const bill = reduceTo(packages, await billOfMaterials(), packageJson.name);
  await writeFile(path.join(folder, 'LICENSES.txt'), licencesOf(packages));
  await writeFile(path.join(folder, 'sbom.cdx.json'), `${JSON.stringify(bill, undefined, 2)}\n`);
  return packages.length;
}

/** What `machinist driver new` and `from-mcm-provider` make a driver from, where the checkout has it. */
async function putScaffolds(to: string): Promise<void> {
  for (const example of ['shared', ...LANGUAGES]) {
    await copyExample(path.join(ROOT, 'examples/drivers', example), path.join(to, 'examples/drivers', example));
  }
  await cp(path.join(ROOT, CONTRACT), path.join(to, CONTRACT));
  await copyLibrary(ROOT, path.join(to, SHIM_SOURCE));
  await buildDriverPackage(path.join(to, BUILT_PACKAGE));
}

/** What `machinist try` creates, where the checkout has it. */
async function putDefinitions(to: string): Promise<void> {
  for (const file of globSync('crds/machine.sapcloud.io_*.yaml', { cwd: ROOT })) {
    await cp(path.join(ROOT, file), path.join(to, file));
  }
}

/** Of all packages that the lockfile names. */
async function billOfMaterials(): Promise<Bill> {
  const { stdout } = await promisify(execFile)('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx'], {
    cwd: ROOT,
    maxBuffer: 64e6,
  });
  return JSON.parse(stdout) as Bill; // CycloneDX, by its flag
}
