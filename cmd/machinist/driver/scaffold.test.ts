import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import packageJson from '../../../package.json' with { type: 'json' };
import driverPackageJson from '../../../packages/driver/package.json' with { type: 'json' };
import { newDriver } from './new.ts';
import { commandsIn, copyExample, EXAMPLE_NAME, LANGUAGES, requireName, scaffold } from './scaffold.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

let place: string;
beforeEach(async () => {
  place = await mkdtemp(path.join(tmpdir(), 'scaffold-'));
});
afterEach(async () => {
  await rm(place, { recursive: true });
});

/** The files of a folder, by their path in it. */
async function filesIn(folder: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => path.join(parentPath, name));
  return Object.fromEntries(
    await Promise.all(files.map(async (file) => [path.relative(folder, file), await readFile(file, 'utf8')])),
  );
}

/** A checkout or bundle whose package for TypeScript is built already. */
async function built(): Promise<string> {
  const root = path.join(place, 'root');
  for (const part of ['shared', ...LANGUAGES]) {
    await copyExample(path.join(ROOT, 'examples/drivers', part), path.join(root, 'examples/drivers', part));
  }
  await mkdir(path.join(root, 'proto/machine/driver/v1'), { recursive: true });
  await writeFile(path.join(root, 'proto/machine/driver/v1/driver.proto'), 'the contract\n');
  await mkdir(path.join(root, 'machinist-driver'));
  await writeFile(path.join(root, 'machinist-driver/index.js'), 'the package\n');
  return root;
}

describe.each(LANGUAGES)('a new driver in %s', (language) => {
  test('is the example under another name, with the contract and what all have', async () => {
    const root = await built();

    await scaffold({ language, name: 'acme', place, root });

    const { ...files } = await filesIn(path.join(place, 'acme'));
    const [example, shared] = await Promise.all(
      [language, 'shared'].map((one) => filesIn(path.join(root, 'examples/drivers', one))),
    );
    const renamed = Object.entries({ ...example, ...shared }).map(([file, text]) => [
      file,
      text.replaceAll(EXAMPLE_NAME, 'acme'),
    ]);
    expect(files).toEqual({
      ...Object.fromEntries(renamed),
      'proto/machine/driver/v1/driver.proto': 'the contract\n',
      ...(language === 'typescript' ? { 'machinist-driver/index.js': 'the package\n' } : {}),
    });
    expect(await readdir(place)).toEqual(expect.arrayContaining(['acme', 'root']));
    expect(await readdir(place)).toHaveLength(2);
  });

  test('tells the commands of its README, which end with the proof', async () => {
    const commands = await scaffold({ language, name: 'acme', place, root: await built() });

    expect(commands.slice(-2)).toEqual(['sh start.sh', 'sh verify.sh']);
    expect(await readFile(path.join(place, 'acme/README.md'), 'utf8')).toContain(commands.join('\n'));
  });
});

test('the program in Go has the name of its driver, also where Go would give it another one', async () => {
  const [build] = await scaffold({ language: 'go', name: 'v2', place, root: await built() });

  expect(build).toBe('go build -o v2 .');
});

test('what building and running an example leaves is not copied', async () => {
  const from = path.join(place, 'from');
  await mkdir(path.join(from, 'run'), { recursive: true });
  await Promise.all(
    ['.gitignore', 'run/log', 'driver', 'driver.go'].map((file) => writeFile(path.join(from, file), 'run/\ndriver\n')),
  );

  await copyExample(from, path.join(place, 'to'));

  expect((await readdir(path.join(place, 'to'))).toSorted()).toEqual(['.gitignore', 'driver.go']);
});

test.each(['a', 'acme', 'acme-driver-2', 'x'.repeat(63)])('%s can be the name of a driver', (name) => {
  expect(() => requireName(name)).not.toThrow();
});

test.each(['', 'Acme', '../acme', '/tmp/acme', '2nd', 'acme-', 'a b', 'acme.io', 'x'.repeat(64)])(
  'of %j as a name it is told what is expected',
  (name) => {
    expect(() => requireName(name)).toThrow(/^".*" is not a valid driver name: .*such as acme-driver/);
  },
);

test.each(['contract', 'machinist-driver', 'run', 'true', 'internal'])(
  '%s is no name, because it means something else',
  (name) => {
    expect(() => requireName(name)).toThrow(`${name} is reserved in the folder of a driver; choose another name`);
  },
);

test('a folder that is not empty stays as it is, and an empty one is filled', async () => {
  const root = await built();
  await mkdir(path.join(place, 'full'));
  await writeFile(path.join(place, 'full/mine'), '');
  await writeFile(path.join(place, 'file'), '');
  await mkdir(path.join(place, 'empty'));

  const write = (name: string) => scaffold({ language: 'go', name, place, root });

  await expect(write('full')).rejects.toThrow(/\/full is not empty; choose another name, or remove it$/);
  await expect(write('file')).rejects.toThrow(/\/file is a file; choose another name, or remove it$/);
  await write('empty');
  expect(await readdir(path.join(place, 'full'))).toEqual(['mine']);
  expect(await readdir(path.join(place, 'empty'))).toContain('main.go');
});

test('the proof is told as it works, wherever machinist is', async () => {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);

  const code = await newDriver('acme', { language: 'go' }, { out: say, err: say, env: {} }, place);

  expect(code).toBe(0);
  expect(lines.slice(1)).toEqual([
    '  cd acme',
    '  go build -o acme .',
    '  sh start.sh',
    `  MACHINIST='npm --prefix ${ROOT} run -s machinist --' sh verify.sh`,
  ]);
});

test.each([
  { what: 'too old for TypeScript', exits: 1, node: [`  export DRIVER_NODE='${process.execPath}'`] },
  { what: 'new enough', exits: 0, node: [] },
])(
  'the Node that a driver in TypeScript starts with is named where the first of the PATH is $what',
  async ({ exits, node }) => {
    const lines: string[] = [];
    const say = (line: string): void => void lines.push(line);
    await writeFile(path.join(place, 'node'), `#!/bin/sh\nexit ${exits}\n`, { mode: 0o755 });

    await newDriver(
      'acme',
      { language: 'typescript' },
      { out: say, err: say, env: { PATH: `${ROOT}/node_modules/.bin:${place}:/bin:/usr/bin` } },
      place,
    );

    expect(lines.slice(1)).toEqual([
      '  cd acme',
      ...node,
      '  npm install',
      '  npm run types',
      '  sh start.sh',
      expect.stringContaining('sh verify.sh'),
    ]);
  },
);

test.each([
  {
    version: '20.20.2',
    says: 'this driver needs Node 24.12 or newer, but ./node is 20.20.2: set DRIVER_NODE to the path of a newer one\n',
  },
  {
    version: '24.11.0',
    says: 'this driver needs Node 24.12 or newer, but ./node is 24.11.0: set DRIVER_NODE to the path of a newer one\n',
  },
  { version: '24.12.0', says: '' },
  { version: '26.0.0', says: '' },
])('a driver in TypeScript that Node $version runs says "$says"', async ({ version, says }) => {
  const fake = `if [ "$1" = --version ]; then echo ${version}; exit; fi
if [ "$1" = -e ]; then exec '${process.execPath}' -e "Object.defineProperty(process, 'versions', { value: { node: '${version}' } }); $2"; fi
exit 0
`;
  await writeFile(path.join(place, 'node'), `#!/bin/sh\n${fake}`, { mode: 0o755 });
  const script = path.join(ROOT, 'examples/drivers/typescript/run.sh');

  const ran = promisify(execFile)('sh', [script], {
    cwd: place,
    env: { DRIVER_NODE: './node', PATH: process.env['PATH'] },
  });

  expect(
    await ran.then(
      () => '',
      (err: { stderr: string }) => err.stderr,
    ),
  ).toBe(says);
});

test('where no folder can be made it is told why', async () => {
  const made = scaffold({ language: 'go', name: 'acme', place: path.join(place, 'nowhere'), root: ROOT });

  await expect(made).rejects.toThrow(/cannot create .*\/nowhere\/acme: ENOENT/);
});

test('the first commands of a page are those of its first block', () => {
  expect(commandsIn('# A\n\n```sh\none\ntwo\n```\n\n```sh\nthree\n```\n')).toEqual(['one', 'two']);
  expect(commandsIn('# A\n')).toEqual([]);
});

test('the example in TypeScript is checked with the compiler and types that this project pins', async () => {
  const text = await readFile(path.join(ROOT, 'examples/drivers/typescript/package.json'), 'utf8');
  const { engines, devDependencies } = JSON.parse(text) as Pick<typeof packageJson, 'engines' | 'devDependencies'>;

  expect(engines).toEqual(driverPackageJson.engines);
  expect(packageJson.devDependencies).toMatchObject(devDependencies);
});
