import { existsSync, readFileSync } from 'node:fs';

import { debianPackages, NoPackagesError, TOOLS } from '../debian/packages.ts';

/** The services of OpenStack as Debian 12 has them. They run with the machine's own Python. */
const PACKAGES = [
  'python3-keystone',
  'python3-glance',
  'python3-placement',
  'python3-nova',
  'python3-neutron',
  'python3-cinder',
  'python3-fixtures',
];
/** The Python that these packages are for. */
export const PYTHON = '/usr/bin/python3';

/** The level cannot run here; the message says why, in one sentence. */
export class NoOpenStackError extends Error {
  override readonly name = 'NoOpenStackError';
}

/** Why there can be no OpenStack on a machine with this /etc/os-release and these files; undefined when there can be. */
export function obstacle(osRelease: string, isThere: (path: string) => boolean): string | undefined {
  const isDebian12 = /^ID=debian$/m.test(osRelease) && /^VERSION_ID="12"$/m.test(osRelease);
  if (!isDebian12) return 'its services are taken from Debian 12, and this is another system';
  const missing = [...TOOLS, PYTHON].find((path) => !isThere(path));
  return missing === undefined ? undefined : `its services need ${missing}, which is not here`;
}

/**
 * The folder with the unpacked packages, downloaded at the first time (120 MB, half a minute). Throws NoOpenStackError where the
 * machine is none that can have them, or apt does not get them.
 */
export async function openStackPackages(log: (line: string) => void): Promise<string> {
  const reason = obstacle(existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '', existsSync);
  if (reason !== undefined) throw new NoOpenStackError(reason);
  try {
    return await debianPackages('openstack', PACKAGES, log);
  } catch (err) {
    if (!(err instanceof NoPackagesError)) throw err;
    throw new NoOpenStackError(err.message, { cause: err });
  }
}
