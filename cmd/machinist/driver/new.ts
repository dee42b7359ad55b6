import { installation } from '../installation.ts';
import { exitCodeOf, type Terminal } from '../terminal.ts';
import type { NewCommandOptions } from './command.ts';
import { scaffold } from './scaffold.ts';

/** Writes a new driver to the folder that the command is run in. Resolves with the exit code. */
export async function newDriver(
  name: string,
  { language }: NewCommandOptions,
  { out, ...terminal }: Terminal,
  place: string = process.cwd(),
): Promise<number> {
  return await exitCodeOf({ out, ...terminal }, async () => {
    const commands = await scaffold({ language, name, place, root: installation() });
    out(`wrote a driver to ./${name}, which runs as it is; ./${name}/README.md says what is yours to change:\n`);
    for (const command of [`cd ${name}`, ...commands]) out(`  ${command}`);
  });
}
