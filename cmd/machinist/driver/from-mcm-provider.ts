import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

import { messageOf } from '../../../pkg/driver/errno.ts';
import { CommandError } from '../command-error.ts';
import { installation } from '../installation.ts';
import { runForExitCode, type Terminal } from '../terminal.ts';
import type { FromMcmProviderOptions } from './command.ts';
import { mcmProgramFiles, type McmProgram, OLDEST_GO, ORIGINAL, programOf, SHIM_FOLDER } from './mcm-program.ts';
import { MCM_PROVIDERS, type McmProvider } from './mcm-providers.ts';
import { requireFree } from './scaffold.ts';

/** Where a checkout and a bundle have the shim. */
export const SHIM_SOURCE = 'packages/mcm-provider';

/** So that what is made of a name is a label of Kubernetes. */
const LONGEST_NAME = 50;

/**
 * Writes a driver that serves a provider of machine-controller-manager, and compiles it. The folder is there whole and compiled, or not at
 * all. Resolves with the exit code.
 */
export async function fromMcmProvider(
  given: string | undefined,
  options: FromMcmProviderOptions,
  terminal: Terminal,
): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const program = await programFrom(given, options);
    const out = path.resolve(options.out);
    await requireFree(out);
    if (options.build) await requireGo(terminal.env);
    const aside = path.join(path.dirname(out), `.${path.basename(out)}.${process.pid}.new`);
    try {
      await write(aside, program);
      if (options.build) await compile(aside, program, terminal);
      await rename(aside, out);
    } catch (err) {
      if (err instanceof CommandError) throw err;
      throw new CommandError(`cannot create ${out}: ${messageOf(err)}`);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
    const { provider, name } = program.provider;
    terminal.out(`created ${options.out}; its README.md explains how to run it. To start it:\n`);
    if (!options.build)
      terminal.out(`  (cd ${options.out} && go mod tidy && CGO_ENABLED=0 go build -o ${programOf(program)} .)`);
    terminal.out(
      `  ${options.out}/${programOf(program)} --address=unix:///tmp/${name}.sock --state-directory=/tmp/${name}-state`,
    );
    terminal.out(`\nand the manager with --driver=${provider ?? name}=unix:///tmp/${name}.sock`);
  });
}

/** Throws CommandError, which names the argument or the flag, and the remedy. */
async function programFrom(given: string | undefined, options: FromMcmProviderOptions): Promise<McmProgram> {
  const { source, mcmSource } = options;
  const { module, version } = source === undefined ? splitModule(given) : await checkedOut('--source', source, given);
  if (mcmSource !== undefined) await checkedOut('--mcm-source', mcmSource, ORIGINAL);
  return {
    provider: providerOf(module, options),
    module,
    version,
    source: source === undefined ? undefined : path.resolve(source),
    originalSource: mcmSource === undefined ? undefined : path.resolve(mcmSource),
  };
}

interface GoModule {
  readonly module: string;
  readonly version: string | undefined;
}

function splitModule(given: string | undefined): GoModule {
  const [, module, version] = /^([\w./~-]+)@([\w.+-]+)$/.exec(given ?? '') ?? [];
  if (module === undefined)
    throw new CommandError(
      `${given === undefined ? 'the module is missing' : `${JSON.stringify(given)} is not a module with a version`}: expected ` +
        'MODULE@VERSION, such as github.com/gardener/machine-controller-manager-provider-aws@v0.28.0, or --source with a checkout',
    );
  return { module, version };
}

/** What the go.mod of a checkout says; `wanted` is what it should be one of, if that is known. */
async function checkedOut(flag: string, folder: string, wanted: string | undefined): Promise<GoModule> {
  const file = path.join(folder, 'go.mod');
  const text = await readFile(file, 'utf8').catch((err: unknown) => {
    throw new CommandError(`${flag} ${folder}: not a checkout of a Go module: ${messageOf(err)}`);
  });
  const module = /^module\s+"?([^\s"]+)/m.exec(text)?.[1];
  if (module === undefined) throw new CommandError(`${flag} ${folder}: go.mod names no module`);
  if (wanted !== undefined && wanted.split('@')[0] !== module)
    throw new CommandError(`${flag} ${folder} is a checkout of ${module}, not of ${wanted}`);
  return { module, version: undefined };
}

function providerOf(module: string, { import: imports, expression, provider }: FromMcmProviderOptions): McmProvider {
  const known = new Map(Object.entries(MCM_PROVIDERS)).get(bare(module));
  if (known === undefined && (imports.length === 0 || expression === undefined))
    throw new CommandError(
      `${module} is not a known provider: name what makes its driver with --import and --constructor, as its ` +
        'cmd/machine-controller/main.go does it. Known are ' +
        Object.values(MCM_PROVIDERS)
          .map(({ name }) => name)
          .join(', '),
    );
  if (provider !== undefined && !/^[A-Za-z0-9][\w.-]*$/.test(provider))
    throw new CommandError(
      `--provider ${JSON.stringify(provider)}: expected letters, digits, dots, dashes and underscores, such as AWS`,
    );
  // With a constructor of its own, what the table has of the other one is of no use.
  const base: McmProvider =
    known !== undefined && expression === undefined
      ? known
      : {
          name: known?.name ?? nameOf(module),
          imports: [],
          expression: '',
          provider: known?.provider,
          listScope: 'cluster',
          unimplemented: [],
          secretKeys: [],
        };
  return {
    ...base,
    imports: imports.length > 0 ? imports : base.imports,
    expression: expression ?? base.expression,
    provider: provider ?? base.provider,
  };
}

/** Without the major version of Go modules. */
function bare(module: string): string {
  return module.replace(/\/v\d+$/, '');
}

/** What names a program, a folder and objects of Kubernetes. */
function nameOf(module: string): string {
  const name = path
    .basename(bare(module))
    .replace(/^machine-controller-manager-provider-/, '')
    .toLowerCase()
    .replaceAll(/[^a-z\d]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, LONGEST_NAME)
    .replace(/-$/, '');
  return name === '' ? 'provider' : name;
}

async function write(folder: string, program: McmProgram): Promise<void> {
  await mkdir(folder);
  for (const [file, text] of mcmProgramFiles(program)) await writeFile(path.join(folder, file), text);
  const library = path.join(folder, SHIM_FOLDER);
  await copyLibrary(installation(), library);
  await writeFile(path.join(folder, 'go.sum'), await checksums([library, program.source, program.originalSource]));
}

/** What checkouts say of their modules, so that Go need not ask the checksum database, which does not have all of them. */
async function checksums(folders: readonly (string | undefined)[]): Promise<string> {
  const texts = await Promise.all(
    folders.map(async (folder) =>
      folder === undefined ? '' : await readFile(path.join(folder, 'go.sum'), 'utf8').catch(() => ''),
    ),
  );
  const lines = new Set(texts.flatMap((text) => text.split('\n')).filter((line) => line !== ''));
  return [...lines]
    .toSorted()
    .map((line) => `${line}\n`)
    .join('');
}

/** Copies the library of a checkout or a bundle, without its tests. */
export async function copyLibrary(root: string, to: string): Promise<void> {
  const isTest = (file: string): boolean => file.endsWith('_test.go') || path.basename(file) === 'testdata';
  await cp(path.join(root, SHIM_SOURCE), to, { recursive: true, filter: (file) => !isTest(file) });
}

/** Throws CommandError when Go is not there, or too old. */
async function requireGo(env: Terminal['env']): Promise<void> {
  const remedy = `install Go ${OLDEST_GO} or newer, or write the files only, with --no-build`;
  const { stdout } = await promisify(execFile)('go', ['env', 'GOVERSION'], { env }).catch(
    (err: NodeJS.ErrnoException) => {
      throw new CommandError(
        err.code === 'ENOENT' ? `go is not on the PATH; ${remedy}` : `go env: ${messageOf(err)}; ${remedy}`,
      );
    },
  );
  const version = stdout.trim();
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(version) ?? [];
  if (major === undefined) return; // built from source
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_GO.split('.').map(Number);
  if (Number(major) > oldestMajor || (Number(major) === oldestMajor && Number(minor) >= oldestMinor)) return;
  throw new CommandError(`${version} is too old; ${remedy}`);
}

async function compile(folder: string, program: McmProgram, { err: say, env }: Terminal): Promise<void> {
  for (const [what, ...argv] of [
    ['downloading its modules', 'mod', 'tidy'],
    ['compiling it, which takes a few minutes the first time', 'build', '-o', programOf(program), '.'],
  ]) {
    say(`${what} …`);
    await go(folder, argv, program, env);
  }
}

async function go(
  folder: string,
  argv: readonly string[],
  { module }: McmProgram,
  given: Terminal['env'],
): Promise<void> {
  try {
    const env = { ...given, CGO_ENABLED: '0', GOWORK: 'off' };
    await promisify(execFile)('go', argv, { cwd: folder, env, maxBuffer: 64e6 });
  } catch (err) {
    const { stderr = '' } = err as { stderr?: string };
    const lines = stderr
      .split('\n')
      .filter((line) => line !== '' && !/^(go: (downloading|finding|found) |# )/.test(line));
    throw new CommandError(
      `go ${argv.join(' ')} failed: ${lines.slice(0, 5).join('\n') || messageOf(err)}\nnothing was created; ${remedyOf(argv, module)}`,
    );
  }
}

/** Modules are read first, and compiled once they are there. */
function remedyOf(argv: readonly string[], module: string): string {
  const check = `check --import and --constructor against cmd/machine-controller/main.go of ${module}`;
  return argv[0] === 'build'
    ? check
    : `use --source and --mcm-source with checkouts where modules cannot be downloaded, or ${check} where a package is not found`;
}
