import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

import { installation } from '../installation.ts';
import { runForExitCode, type Terminal } from '../terminal.ts';
import type { NewCommandOptions } from './command.ts';
import { scaffold } from './scaffold.ts';

/** Writes a new driver to the folder that the command is run in. Resolves with the exit code. */
export async function newDriver(
  name: string,
  { language }: NewCommandOptions,
  terminal: Terminal,
  place: string = process.cwd(),
): Promise<number> {
  return await runForExitCode(terminal, async () => {
    const root = installation();
    const { out } = terminal;
    const commands = await scaffold({ language, name, place, root });
    out(`created a working driver in ./${name}; ./${name}/README.md explains what to change. To try it:\n`);
    // Its scripts read DRIVER_NODE, those that the proof calls as well.
    const needsNode = language === 'typescript' && !(await runsDrivers('node', terminal.env));
    const node = needsNode ? [`export DRIVER_NODE='${process.execPath}'`] : [];
    for (const command of [`cd ${name}`, ...node, ...commands])
      out(`  ${command.replace(/^sh verify\.sh$/, `MACHINIST='${callOf(root)}' $&`)}`);
  });
}

/** Whether a Node runs the files of a driver as they are. */
async function runsDrivers(node: string, env: Terminal['env']): Promise<boolean> {
  const code = 'process.exit(process.features.typescript ? 0 : 1)';
  return await promisify(execFile)(node, ['-e', code], { env: { PATH: pathOfShell(env) } }).then(
    () => true,
    () => false,
  );
}

/** Without what npm puts before it, such as the Node of a checkout. */
function pathOfShell(env: Terminal['env']): string {
  const folders = (env['PATH'] ?? '').split(path.delimiter);
  return folders.filter((folder) => !folder.endsWith(path.join('node_modules', '.bin'))).join(path.delimiter);
}

/** How this program is called from any folder: it may not be on the PATH. */
function callOf(root: string): string {
  const isCheckout = existsSync(path.join(root, 'hack/bootstrap.cjs'));
  return isCheckout
    ? `npm --prefix ${root} run -s machinist --`
    : `${process.execPath} ${path.join(root, 'cmd/machinist/main.js')}`;
}
