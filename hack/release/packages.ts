import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { resolveProgram } from '../control-plane/binaries.ts';
import { buildDriverPackage } from '../driver-package/build.ts';
import { releaseNotes } from './changelog.ts';
import { krewManifest } from './krew.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** The stages of the Dockerfile, and what their images are called. */
const IMAGES = {
  manager: 'machinist',
  'sim-driver': 'machinist-sim-driver',
  'kwok-driver': 'machinist-kwok-driver',
  'openstack-driver': 'machinist-openstack-driver',
  'cluster-api-driver': 'machinist-cluster-api-driver',
  'ironcore-driver': 'machinist-ironcore-driver',
} as const;
const PROGRAMS_OF_MANAGER = ['machinist', 'machine-controller-manager', 'machine-controller'];

export interface PackageOptions {
  readonly version: string;
  readonly description: string;
  /** Where the packages of this version will be found. */
  readonly downloadURL: string;
  readonly say: (line: string) => void;
}

/** Writes what is published of a version to an empty folder, each part checked as its users would start it. */
export async function makePackages(folder: string, options: PackageOptions): Promise<void> {
  const { version, description, downloadURL, say } = options;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });

  const cli = await packNPM(ROOT, folder);
  await checkCLI(path.join(folder, cli), version);
  say(`${cli}: installed; prints ${version}`);

  const driver = path.join(ROOT, 'dist/machinist-driver');
  await buildDriverPackage(driver);
  say(`${await packNPM(driver, folder)}: built`);

  const uri = `${downloadURL}/${cli}`;
  const sha256 = await sha256Of(path.join(folder, cli));
  await writeFile(path.join(folder, 'machinist.yaml'), krewManifest({ version, uri, sha256, description }));
  say(`machinist.yaml: manifest for krew, with the checksum of ${cli}`);

  say(`${await packChart(folder, version)}: linted and rendered`);
  say(await makeImages(folder, version));

  const changelog = await readFile(path.join(ROOT, 'CHANGELOG.md'), 'utf8');
  await writeFile(path.join(folder, 'notes.md'), releaseNotes(changelog, version));
  say('notes.md: text of the release');

  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.tgz')).toSorted();
  const sums = await Promise.all(files.map(async (file) => `${await sha256Of(path.join(folder, file))}  ${file}\n`));
  await writeFile(path.join(folder, 'SHA256SUMS'), sums.join(''));
  say('SHA256SUMS: checksums of the packages');
}

/** Resolves with the name of the tarball. */
async function packNPM(source: string, folder: string): Promise<string> {
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], source);
  const [, name = ''] = /"filename": "([^"]+)"/.exec(stdout) ?? [];
  return name;
}

/** Installs it where nothing else is. */
async function checkCLI(tarball: string, version: string): Promise<void> {
  const prefix = await mkdtemp(path.join(tmpdir(), 'machinist-release-'));
  try {
    await run('npm', ['install', '--global', '--offline', '--prefix', prefix, tarball], prefix);
    for (const name of ['machinist', 'kubectl-machinist']) {
      requireVersion(name, (await run(path.join(prefix, 'bin', name), ['--version'], prefix)).stdout, version);
    }
  } finally {
    await rm(prefix, { recursive: true });
  }
}

async function packChart(folder: string, version: string): Promise<string> {
  const { path: helm } = await resolveProgram('helm');
  const chart = path.join(ROOT, 'deploy/helm/machinist');
  await run(helm, ['lint', '--strict', chart], ROOT);
  // Its name is that of the package of npm, and registries of charts expect it.
  const place = path.join(folder, 'chart');
  await run(helm, ['package', chart, '--destination', place], ROOT);
  const file = `chart/machinist-${version}.tgz`;
  await run(helm, ['template', 'machinist', path.join(folder, file)], ROOT);
  return file;
}

/** Images where an engine runs; else what the image of the manager holds. */
async function makeImages(folder: string, version: string): Promise<string> {
  const hasEngine = await run('docker', ['info'], ROOT).then(
    () => true,
    () => false,
  );
  if (hasEngine) {
    for (const [stage, name] of Object.entries(IMAGES)) {
      await run('docker', ['build', '--target', stage, '--tag', `${name}:${version}`, '.'], ROOT);
    }
    requireVersion(
      'image',
      (await run('docker', ['run', '--rm', `machinist:${version}`, '--version'], ROOT)).stdout,
      version,
    );
    return `images ${Object.values(IMAGES).join(', ')}: built for this platform; the manager prints ${version}`;
  }
  const image = path.join(folder, 'image');
  await run(process.execPath, ['hack/image/main.ts', image, ...PROGRAMS_OF_MANAGER], ROOT);
  for (const program of PROGRAMS_OF_MANAGER) {
    const { stdout } = await run(process.execPath, [path.join(image, 'cmd', program, 'main.js'), '--version'], folder);
    requireVersion(program, stdout, version);
  }
  return `image/: contents of the image of the manager, because no Docker daemon is running; its programs print ${version}`;
}

function requireVersion(program: string, printed: string, version: string): void {
  if (printed.trim() !== version) throw new Error(`${program} prints version ${printed.trim()} instead of ${version}`);
}

async function sha256Of(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}

/** Without what npm has set for the script that this is part of. */
async function run(program: string, args: readonly string[], cwd: string): Promise<{ stdout: string }> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(?:npm_|INIT_CWD)/i.test(key)));
  return await promisify(execFile)(program, [...args], { cwd, env, maxBuffer: 64e6 });
}
