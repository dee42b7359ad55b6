import { rm } from 'node:fs/promises';
import path from 'node:path';

import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';

import { isGeneratedClients, NO_GENERATED_CLIENTS } from '../../pkg/kube/client/generated-clients.ts';
import { WEB_FILES } from './web-files.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** The thread of the Leases is started by its file, which lies beside the module that starts it. */
const STARTS_LEASE_THREAD = 'pkg/kube/leader/lease-thread.ts';
const LEASE_THREAD = { in: 'pkg/kube/leader/lease-thread-main.ts', out: 'chunks/lease-thread-main' };
/** Packages in CommonJS ask for Node's modules by `require`. */
const REQUIRE = `import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);`;

/** What everything that is bundled here has in common: it runs in the Node that this project pins, and the packages in it are listed. */
export const BUNDLED = {
  absWorkingDir: ROOT,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  metafile: true,
  legalComments: 'none',
  banner: { js: REQUIRE },
  logLevel: 'warning',
} as const satisfies BuildOptions;

/**
 * Writes programs to `folder` as JavaScript that needs no node_modules: `cmd/<program>/main.js`, and `chunks` with what they share or load
 * later. Nothing is minified, so that stack traces can be read; esbuild's `keepNames` would define the name of each closure anew each time
 * that it is made, for 4 % of the manager's CPU. `target`: the oldest Node that they are for. Returns the folders of the packages that went in, from the root of the checkout.
 */
export async function bundle(
  programs: readonly string[],
  folder: string,
  target: string = BUNDLED.target,
): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: [
      ...programs.map((program) => ({ in: `cmd/${program}/main.ts`, out: `cmd/${program}/main` })),
      LEASE_THREAD,
    ],
    outdir: folder,
    chunkNames: 'chunks/[name]-[hash]',
    splitting: true,
    plugins: [WITHOUT_GENERATED_CLIENTS, WITHOUT_DEVTOOLS, WEB_FILES],
    define: { 'process.env.NODE_ENV': '"production"' },
    ...BUNDLED,
    target,
  });
  const isStarted = Object.values(metafile.outputs).some(({ inputs }) => STARTS_LEASE_THREAD in inputs);
  if (!isStarted) await rm(path.join(folder, `${LEASE_THREAD.out}.js`));
  return packagesIn(metafile);
}

const WITHOUT_GENERATED_CLIENTS: Plugin = {
  name: 'without-generated-clients',
  setup(bundler) {
    bundler.onResolve({ filter: /^\.\/gen\/index\.js$/ }, ({ path: specifier, importer }) =>
      isGeneratedClients(specifier, importer) ? { path: 'generated-clients', namespace: 'left-out' } : undefined,
    );
    bundler.onLoad({ filter: /.*/, namespace: 'left-out' }, () => ({ contents: NO_GENERATED_CLIENTS }));
  },
};

/** What draws terminals has them for its developers, where they are installed. */
const WITHOUT_DEVTOOLS: Plugin = {
  name: 'without-devtools',
  setup(bundler) {
    bundler.onResolve({ filter: /^react-devtools-core$/ }, () => ({ path: 'devtools', namespace: 'no-devtools' }));
    bundler.onLoad({ filter: /.*/, namespace: 'no-devtools' }, () => ({ contents: 'export default undefined;' }));
  },
};

/** Folders of the packages of which at least one file has anything left in the outputs. */
export function packagesIn({ outputs }: Metafile): string[] {
  const files = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs));
  const folders = files.flatMap((file) => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set(folders)].toSorted();
}
