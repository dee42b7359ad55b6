import { execFile } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

import { messageOf } from './errno.ts';
import { ControlPlaneError } from './error.ts';
import { PROGRAMS } from './programs.ts';

/**
 * Unpacks the programs in an archive, wherever they lie in it, into the folder `target`. Returns their names. Whoever made the archive can
 * neither run anything by the names of its entries nor have other files taken for them. Throws ControlPlaneError (`binaries-unfit`), or the
 * signal's reason.
 */
export async function unpack(
  archive: string,
  target: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const run = async (args: readonly string[]): Promise<string> => {
    try {
      const { stdout } = await promisify(execFile)('tar', [...args], { signal, maxBuffer: 16e6 });
      return stdout;
    } catch (err) {
      signal?.throwIfAborted();
      throw new ControlPlaneError('binaries-unfit', `The archive could not be unpacked: ${messageOf(err)}`, {
        cause: err,
      });
    }
  };
  const names: readonly string[] = PROGRAMS.map(({ name }) => name);
  const entries = (await run(['-tzf', archive])).split('\n').filter((entry) => names.includes(basename(entry)));
  if (entries.length === 0) return [];
  const refused = entries.find((entry) => entry.startsWith('-') || entry.split('/').includes('..'));
  if (refused !== undefined) {
    throw new ControlPlaneError(
      'binaries-unfit',
      `The archive has an entry "${refused}": names that begin with "-" or contain ".." are not unpacked. Make the archive again without it.`,
    );
  }
  const raw = join(target, '..', 'raw');
  mkdirSync(raw);
  await run(['-xzf', archive, '-C', raw, '--no-same-owner', '--', ...entries]);
  const found: string[] = [];
  for (const entry of entries) {
    const file = join(raw, entry);
    if (!existsSync(file) || !lstatSync(file).isFile() || found.includes(basename(entry))) continue; // folders, links
    chmodSync(file, 0o755);
    renameSync(file, join(target, basename(entry)));
    found.push(basename(entry));
  }
  return found;
}
