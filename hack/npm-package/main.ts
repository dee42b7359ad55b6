import { writeFile } from 'node:fs/promises';
import path from 'node:path';

import packageJson from '../../package.json' with { type: 'json' };
import { writeContents } from '../image/contents.ts';

/*
 * `main.ts`: what `npm pack` adds to bin/: the program as JavaScript for the Nodes that package.json allows. Everything is bundled, so that
 * the package has no dependencies: those of package.json are all for development.
 */
const FOLDER = path.resolve(import.meta.dirname, '../../dist/npm');

const { name, version, license, engines } = packageJson;
const [, oldest = ''] = /(\d[\d.]*)/.exec(engines.node) ?? [];
const packages = await writeContents(FOLDER, ['machinist'], `node${oldest}`);
await writeFile(path.join(FOLDER, 'package.json'), `${JSON.stringify({ name, version, license, type: 'module' })}\n`);
console.error(`wrote machinist with ${packages} packages to ${FOLDER}`);
