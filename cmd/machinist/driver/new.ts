import { existsSync } from 'node:fs';
import path from 'node:path';

import { installation } from '../installation.ts';
import { exitCodeOf, type Terminal } from '../terminal.ts';
import type { NewCommandOptions } from './command.ts';
import { scaffold } from './scaffold.ts';

/** Writes a new driver to the folder that the command is run in. Resolves with the exit code. */
export async function newDriver(
  name: string,
  { language }: NewCommandOptions,
  terminal: Terminal,
  place: string = process.cwd(),
): Promise<number> {
  return await exitCodeOf(terminal, async () => {
    const root = installation();
    const { out } = terminal;
    const commands = await scaffold({ language, name, place, root });
    out(`wrote a driver to ./${name}, which runs as it is; ./${name}/README.md says what is yours to change:\n`);
    for (const command of [`cd ${name}`, ...commands])
      out(`  ${command.replace(/^sh verify\.sh$/, `MACHINIST='${callOf(root)}' $&`)}`);
  });
}

/** How this program is called from any folder: it may not be on the PATH. */
function callOf(root: string): string {
  const isCheckout = existsSync(path.join(root, 'hack/bootstrap.cjs'));
  return isCheckout
    ? `npm --prefix ${root} run -s machinist --`
    : `${process.execPath} ${path.join(root, 'cmd/machinist/main.js')}`;
}
