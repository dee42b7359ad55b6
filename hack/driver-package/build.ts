import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { build } from 'esbuild';

import packageJson from '../../package.json' with { type: 'json' };
import { BUNDLED, packagesIn } from '../image/bundle.ts';
import { licencesOf, readPackage } from '../image/licences.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SOURCE = path.join(ROOT, 'packages/driver');

/**
 * Writes the npm package of packages/driver: one file of JavaScript, which holds whatever it needs but commander, and the types of what it
 * exports. It is not a workspace of npm: the drivers of this project use the same sources without a step in between.
 */
export async function buildDriverPackage(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  const { metafile } = await build({
    entryPoints: ['packages/driver/index.ts'],
    outfile: path.resolve(folder, 'index.js'),
    external: ['commander'],
    ...BUNDLED,
  });
  await writeTypes(path.resolve(folder, 'types'));
  const packages = await Promise.all(packagesIn(metafile).map((one) => readPackage(path.join(ROOT, one))));
  const about = JSON.parse(await readFile(path.join(SOURCE, 'package.json'), 'utf8')) as object;
  const { version, devDependencies } = packageJson;
  // What keeps the sources from being installed or published as the package.
  const ofSources = { private: undefined, scripts: undefined };
  const whole = { ...about, ...ofSources, version, dependencies: { commander: devDependencies.commander } };
  await writeFile(path.join(folder, 'package.json'), `${JSON.stringify(whole, undefined, 2)}\n`);
  await writeFile(path.join(folder, 'LICENSES.txt'), licencesOf(packages));
  await copyFile(path.join(SOURCE, 'README.md'), path.join(folder, 'README.md'));
}

async function writeTypes(folder: string): Promise<void> {
  const place = await mkdtemp(path.join(tmpdir(), 'types-'));
  const config = path.join(place, 'tsconfig.json');
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: ROOT,
    outDir: folder,
    typeRoots: [path.join(ROOT, 'node_modules/@types')],
  };
  const include = [path.join(SOURCE, 'index.ts')];
  try {
    await writeFile(config, JSON.stringify({ extends: path.join(ROOT, 'tsconfig.json'), compilerOptions, include }));
    await promisify(execFile)(path.join(ROOT, 'node_modules/.bin/tsc'), ['-p', config], { cwd: ROOT });
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}
