import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import { debianPackages, NoPackagesError, TOOLS } from '../debian/packages.ts';

/** A Chromium, and the environment that it is started in. */
export interface Chromium {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

/** There is no Chromium for tests; the message says why, and what to do. */
export class NoChromiumError extends Error {
  override readonly name = 'NoChromiumError';
}

/** Names a Chromium in place of all others. */
const CHROMIUM_VARIABLE = 'CHROMIUM';
const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const PACKAGES = ['chromium', 'fonts-liberation2'];
const REMEDY = `install Debian's package chromium, or name a Chromium by environment variable ${CHROMIUM_VARIABLE}`;
const LIBRARIES = ['usr/lib', 'lib'].flatMap((folder) =>
  ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map((machine) => `${folder}/${machine}`),
);

/** Where a Chromium of this machine is; undefined for none. */
export function installedChromium(
  env: Readonly<Record<string, string | undefined>>,
  isProgram: (path: string) => boolean,
): string | undefined {
  const named = env[CHROMIUM_VARIABLE];
  if (named !== undefined && named !== '') return named;
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
}

/**
 * The Chromium of this machine, else that of Debian in the user's cache, which is downloaded at the first time (220 MB, a minute). Throws
 * NoChromiumError where the machine is none that can have it, or apt does not get it.
 */
export async function chromium(log: (line: string) => void): Promise<Chromium> {
  const installed = installedChromium(process.env, canRun);
  if (installed !== undefined) return { program: installed, env: {} };
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  if (!/^ID=debian$/m.test(release) || !TOOLS.every((tool) => existsSync(tool)))
    throw new NoChromiumError(`there is no Chromium on this machine, which is no Debian either: ${REMEDY}`);
  try {
    return unpacked(await debianPackages('chromium', PACKAGES, log));
  } catch (err) {
    if (!(err instanceof NoPackagesError)) throw err;
    throw new NoChromiumError(`${err.message}: run apt-get update, or ${REMEDY}`, { cause: err });
  }
}

function unpacked(folder: string): Chromium {
  const root = join(folder, 'root');
  const libraries = LIBRARIES.flatMap((path) => [join(root, path), join(root, path, 'pulseaudio')]);
  const fonts = join(folder, 'fonts.conf');
  mkdirSync(join(folder, 'fonts'), { recursive: true });
  writeFileSync(fonts, fontConfiguration(join(root, 'usr/share/fonts'), join(folder, 'fonts')));
  return {
    program: join(root, 'usr/lib/chromium/chromium'),
    env: { LD_LIBRARY_PATH: libraries.join(delimiter), FONTCONFIG_FILE: fonts },
  };
}

/** The one font that is there stands for all that a page may ask for. */
function fontConfiguration(fonts: string, cache: string): string {
  const families = ['system-ui', 'sans', 'sans-serif'].map(
    (family) =>
      `<match target="pattern"><test name="family"><string>${family}</string></test><edit name="family" mode="assign" binding="same"><string>Liberation Sans</string></edit></match>`,
  );
  return [
    '<?xml version="1.0"?>',
    '<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">',
    `<fontconfig><dir>${fonts}</dir><cachedir>${cache}</cachedir>`,
    ...families,
    '<match target="pattern"><edit name="family" mode="append" binding="weak"><string>Liberation Sans</string></edit></match>',
    '</fontconfig>\n',
  ].join('\n');
}

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
