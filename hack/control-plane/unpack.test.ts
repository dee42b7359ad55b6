import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { unpack } from './unpack.ts';

let root: string;
let target: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'machinist-unpack-'));
  target = join(root, 'work/programs');
  for (const folder of [target, join(root, 'source')]) mkdirSync(folder, { recursive: true });
});

afterEach(() => rmSync(root, { recursive: true }));

function put(entry: string): string {
  const file = join(root, 'source', entry);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, entry);
  return entry;
}

/** An archive of these, by the very names. */
function archiveOf(...entries: readonly string[]): string {
  const archive = join(root, 'archive.tar.gz');
  execFileSync('tar', ['-czPf', archive, '-C', join(root, 'source'), '--no-recursion', '--', ...entries]);
  return archive;
}

test('programs are taken from wherever they lie, and nothing else', async () => {
  const archive = archiveOf(put('etcd'), put('a/b/kubectl'), put('a/README'));

  expect(await unpack(archive, target, undefined)).toEqual(['etcd', 'kubectl']);
  expect(readdirSync(target)).toEqual(['etcd', 'kubectl']);
  expect(readFileSync(join(target, 'kubectl'), 'utf8')).toBe('a/b/kubectl');
});

test.each(['-etcd/etcd', '--to-command=COMMAND #/etcd', '../source/etcd', 'a/../etcd'])(
  'an archive with an entry %s is refused, and runs nothing',
  async (name) => {
    const ran = join(root, 'ran');
    const entry = name.replace('COMMAND', `touch ${ran}`);
    put(entry);
    mkdirSync(join(root, 'source/a'), { recursive: true });

    await expect(unpack(archiveOf(entry), target, undefined)).rejects.toMatchObject({
      code: 'binaries-unfit',
      message: expect.stringContaining(`The archive has an entry "${entry}"`),
    });
    expect(existsSync(ran)).toBe(false);
    expect(readdirSync(target)).toEqual([]);
  },
);

test('folders and links are no programs', async () => {
  mkdirSync(join(root, 'source/etcd'));
  symlinkSync('/bin/sh', join(root, 'source/helm'));
  put('kube-apiserver');

  expect(await unpack(archiveOf('etcd', 'helm', 'kube-apiserver'), target, undefined)).toEqual(['kube-apiserver']);
  expect(readdirSync(target)).toEqual(['kube-apiserver']);
});

test('a file behind a link out of the archive stays where it is', async () => {
  const outside = join(root, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'kubectl'), 'of the user');
  symlinkSync(outside, join(root, 'source/kwok'));
  const archive = archiveOf('kwok', 'kwok/kubectl');

  await unpack(archive, target, undefined).catch(() => undefined); // some versions of tar refuse the archive

  expect(readFileSync(join(outside, 'kubectl'), 'utf8')).toBe('of the user');
});
