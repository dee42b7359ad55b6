import { globSync } from 'node:fs';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { withRelease } from './changelog.ts';
import { isLater, withVersion } from './version.ts';

const CONTRACT = 'proto/machine/driver';
const RELEASED_CONTRACT = 'hack/check/released/machine/driver';
const FILES = ['package.json', 'package-lock.json', 'README.md', 'deploy/**/*.yaml', 'docs/operations/*.md'];

/** Makes the sources in `root` those of a version, and what was not released yet its changes. Resolves with the files that it has changed. */
export async function prepareRelease(root: string, version: string, date: string): Promise<readonly string[]> {
  const { version: from } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string };
  if (!isLater(version, from)) throw new Error(`version ${version} does not follow ${from}`);
  const changelog = await readFile(path.join(root, 'CHANGELOG.md'), 'utf8');
  const released = withRelease(changelog, version, date);

  const changed: string[] = [];
  for (const file of globSync(FILES, { cwd: root })) {
    const text = await readFile(path.join(root, file), 'utf8');
    const bumped = withVersion(file, text, from, version);
    if (bumped === text) continue;
    await writeFile(path.join(root, file), bumped);
    changed.push(file);
  }
  await writeFile(path.join(root, 'CHANGELOG.md'), released);
  await rm(path.join(root, RELEASED_CONTRACT), { recursive: true, force: true });
  await cp(path.join(root, CONTRACT), path.join(root, RELEASED_CONTRACT), { recursive: true });
  return [...changed, 'CHANGELOG.md'];
}
