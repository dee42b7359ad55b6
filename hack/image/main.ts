import { writeFile } from 'node:fs/promises';
import path from 'node:path';

import packageJson from '../../package.json' with { type: 'json' };
import { writeContents } from './contents.ts';

/*
 * `main.ts <folder> <program>…`: what an image of these programs of cmd/ holds, without anything around it. Beside the programs lies
 * package.json with the version.
 */
const [folder, ...programs] = process.argv.slice(2);
if (folder === undefined || programs.length === 0)
  throw new Error('usage: node hack/image/main.ts <folder> <program>…');

const packages = await writeContents(folder, programs);
const { name, version, license } = packageJson;
const write = (file: string, text: string, mode = 0o644): Promise<void> =>
  writeFile(path.join(folder, file), text, { mode });
await Promise.all([
  ...programs.map((program) => write(program, launcherOf(program), 0o755)),
  write('package.json', `${JSON.stringify({ name, version, license, type: 'module' })}\n`),
]);
console.log(`wrote ${programs.join(', ')} with ${packages} packages to ${folder}`);

/** Starts a program by its name alone, as manifests of the original do: `./machine-controller-manager`, without a shell. */
function launcherOf(program: string): string {
  return `#!/nodejs/bin/node\nimport './cmd/${program}/main.js';\n`;
}
