import { readFile } from 'node:fs/promises';
import path from 'node:path';

import { build, type Plugin } from 'esbuild';

import { MAIN_SCRIPT, STATIC_FILES, TYPES, type WebFile } from '../../pkg/status-page/web-files.ts';

const PKG = path.resolve(import.meta.dirname, '../../pkg');

/** Puts what browsers load into bundles, in place of the function that reads it from a checkout: one script with all that it imports. */
export const WEB_FILES: Plugin = {
  name: 'web-files',
  setup(bundler) {
    bundler.onLoad({ filter: /\/pkg\/status-page\/web-files\.ts$/ }, async () => {
      const files = await bundledWebFiles();
      const contents = `const FILES = new Map(${JSON.stringify([...files])});\nexport function webFiles() {\n  return FILES;\n}\n`;
      return { contents, loader: 'js' };
    });
  },
};

async function bundledWebFiles(): Promise<ReadonlyMap<string, WebFile>> {
  const files = new Map<string, WebFile>();
  for (const file of STATIC_FILES) {
    const type = TYPES[path.extname(file)] ?? '';
    files.set(file, { type, body: await readFile(path.join(PKG, file), 'utf8') });
  }
  const { outputFiles } = await build({
    entryPoints: [path.join(PKG, MAIN_SCRIPT)],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'warning',
  });
  files.set(MAIN_SCRIPT, { type: TYPES['.ts'] ?? '', body: outputFiles[0]?.text ?? '' });
  return files;
}
