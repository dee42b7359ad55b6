import { execFile } from 'node:child_process';
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

/*
 * `main.ts <folder> <program>…`: what an image of these programs of cmd/ holds, without anything around it. Beside the programs lie
 * package.json with the version, the licences of the packages that went in, and their list (CycloneDX).
 */
const ROOT = path.resolve(import.meta.dirname, '../..');

const [folder, ...programs] = process.argv.slice(2);
if (folder === undefined || programs.length === 0)
  throw new Error('usage: node hack/image/main.ts <folder> <program>…');

await rm(folder, { recursive: true, force: true });
if (programs.includes('machinist')) await putScaffolds(folder);
const folders = await bundle(programs, path.resolve(folder));
const packages = await Promise.all(folders.map((one) => readPackage(path.join(ROOT, one))));
const { name, version, license } = packageJson;
const write = (file: string, text: string, mode = 0o644): Promise<void> =>
  writeFile(path.join(folder, file), text, { mode });
await Promise.all([
  ...programs.map((program) => write(program, launcherOf(program), 0o755)),
  write('package.json', `${JSON.stringify({ name, version, license, type: 'module' })}\n`),
  write('LICENSES.txt', licencesOf(packages)),
  write('sbom.cdx.json', `${JSON.stringify(reduceTo(packages, await billOfMaterials(), name), undefined, 2)}\n`),
]);
console.log(`wrote ${programs.join(', ')} with ${packages.length} packages to ${folder}`);

/** What `machinist driver new` and `from-mcm-provider` make a driver from, where the checkout has it. */
async function putScaffolds(to: string): Promise<void> {
  for (const example of ['shared', ...LANGUAGES]) {
    await copyExample(path.join(ROOT, 'examples/drivers', example), path.join(to, 'examples/drivers', example));
  }
  await cp(path.join(ROOT, CONTRACT), path.join(to, CONTRACT));
  await copyLibrary(ROOT, path.join(to, SHIM_SOURCE));
  await buildDriverPackage(path.join(to, BUILT_PACKAGE));
}

/** Starts a program by its name alone, as manifests of the original do: `./machine-controller-manager`, without a shell. */
function launcherOf(program: string): string {
  return `#!/nodejs/bin/node\nimport './cmd/${program}/main.js';\n`;
}

/** Of all packages that the lockfile names. */
async function billOfMaterials(): Promise<Bill> {
  const { stdout } = await promisify(execFile)('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx'], {
    cwd: ROOT,
    maxBuffer: 64e6,
  });
  return JSON.parse(stdout) as Bill; // CycloneDX, by its flag
}
