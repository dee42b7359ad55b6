import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import packageJson from '../../../package.json' with { type: 'json' };
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
    expect(() => requireName(name)).toThrow(/^".*" cannot be the name of a driver: .*such as acme-driver/);
  },
);

test.each(['contract', 'machinist-driver', 'run', 'true', 'internal'])(
  '%s is no name, because it means something else',
  (name) => {
    expect(() => requireName(name)).toThrow(`${name} means something else in a driver's folder: choose another name`);
  },
);

test('a folder that is not empty stays as it is, and an empty one is filled', async () => {
  const root = await built();
  await mkdir(path.join(place, 'full'));
  await writeFile(path.join(place, 'full/mine'), '');
  await writeFile(path.join(place, 'file'), '');
  await mkdir(path.join(place, 'empty'));

  const write = (name: string) => scaffold({ language: 'go', name, place, root });

  await expect(write('full')).rejects.toThrow(/\/full is not empty: choose another name, or remove it$/);
  await expect(write('file')).rejects.toThrow(/\/file is a file: choose another name, or remove it$/);
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

test('where no folder can be made it is told why', async () => {
  const made = scaffold({ language: 'go', name: 'acme', place: path.join(place, 'nowhere'), root: ROOT });

  await expect(made).rejects.toThrow(/\/nowhere\/acme cannot be made: ENOENT/);
});

test('the first commands of a page are those of its first block', () => {
  expect(commandsIn('# A\n\n```sh\none\ntwo\n```\n\n```sh\nthree\n```\n')).toEqual(['one', 'two']);
  expect(commandsIn('# A\n')).toEqual([]);
});

test('the example in TypeScript is checked with the compiler and types that this project pins', async () => {
  const text = await readFile(path.join(ROOT, 'examples/drivers/typescript/package.json'), 'utf8');
  const { engines, devDependencies } = JSON.parse(text) as Pick<typeof packageJson, 'engines' | 'devDependencies'>;

  expect(engines).toEqual(packageJson.engines);
  expect(packageJson.devDependencies).toMatchObject(devDependencies);
});
