import { spawnSync } from 'node:child_process';
import path from 'node:path';

import { Command } from 'commander';

import packageJson from '../../package.json' with { type: 'json' };
import { prepareRelease } from './prepare.ts';
import { makePackages } from './packages.ts';

/*
 * `main.ts [version]`: makes the sources those of a version, then everything that is published of it, in dist/release. Without a version:
 * what is published of the present one. Publishing needs credentials, and is done by hand: docs/development/releases.md.
 */
const ROOT = path.resolve(import.meta.dirname, '../..');
const FOLDER = 'dist/release';

const command = new Command('release')
  .argument('[version]', 'version to release; without it, only the packages of the current version are created')
  .option(
    '--download-url <url>',
    'URL below which the packages of each version are published',
    'https://example.com/machinist',
  )
  .action(async (version: string | undefined, { downloadUrl }: { downloadUrl: string }) => {
    const say = (line: string): void => console.log(line);
    if (version !== undefined) {
      const files = await prepareRelease(ROOT, version, new Date().toISOString().slice(0, 10));
      say(`version ${version} in ${files.join(', ')}`);
      // The modules of this process are of the former version.
      const again = [import.meta.filename, '--download-url', downloadUrl];
      process.exitCode = spawnSync(process.execPath, again, { stdio: 'inherit' }).status ?? 1;
      return;
    }
    const { version: present, description } = packageJson;
    const options = { version: present, description, downloadURL: `${downloadUrl}/v${present}`, say };
    await makePackages(path.join(ROOT, FOLDER), options);
    say(`wrote version ${present} to ${FOLDER}; docs/development/releases.md describes how to publish it`);
  });
await command.parseAsync();
