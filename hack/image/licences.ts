import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** A package of npm. */
export interface Package {
  readonly name: string;
  readonly version: string;
  /** SPDX expression, as its package.json has it. */
  readonly license: string;
  /** The text of its licence file; empty without one. */
  readonly licenceText: string;
}

/** The package that is installed in `folder`. */
export async function readPackage(folder: string): Promise<Package> {
  const { name, version, license } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as Package;
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  return {
    name,
    version,
    license,
    licenceText: file === undefined ? '' : await readFile(path.join(folder, file), 'utf8'),
  };
}

/** The licences of packages, as one text: most ask to be shipped with copies. */
export function licencesOf(packages: readonly Package[]): string {
  return packages
    .map(({ name, version, license, licenceText }) => `${name} ${version}: ${license}\n\n${licenceText}`)
    .join(`\n${'-'.repeat(80)}\n\n`);
}
