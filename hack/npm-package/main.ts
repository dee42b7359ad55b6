import { globSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { PACKED_GITIGNORE } from '../../cmd/machinist/driver/scaffold.ts';
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
for (const ignored of globSync('examples/**/.gitignore', { cwd: FOLDER })) {
  await rename(path.join(FOLDER, ignored), path.join(FOLDER, path.dirname(ignored), PACKED_GITIGNORE));
}
await writeFile(path.join(FOLDER, 'package.json'), `${JSON.stringify({ name, version, license, type: 'module' })}\n`);
console.error(`wrote machinist with ${packages} packages to ${FOLDER}`);
