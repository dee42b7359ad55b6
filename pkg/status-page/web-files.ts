import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { extname } from 'node:path';

export interface WebFile {
  readonly type: string;
  readonly body: string;
}

/** By the end of a file's name. */
export const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
};

/** The script that the page loads, below pkg. */
export const MAIN_SCRIPT = 'status-page/web/main.ts';
/** Those that it imports. */
const IMPORTED_SCRIPTS = [
  'status-page/web/connection.ts',
  'status-page/web/details.ts',
  'status-page/web/dom.ts',
  'status-page/web/fleet-cards.ts',
  'status-page/web/lists.ts',
  'status-page/web/machine-list.ts',
  'status-page/web/machine-table.ts',
  'status-page/web/phase-bands.ts',
  'status-page/web/phase-plot.ts',
  'status-page/web/state.ts',
  'status-page/web/texts.ts',
  'fleet/human-duration.ts',
] as const;
export const STATIC_FILES = [
  'status-page/web/index.html',
  'status-page/web/style.css',
  'status-page/web/icon.svg',
] as const;

/**
 * What browsers load, by its path below pkg: in a checkout the files as they are, without their types. Bundles have another function in its place,
 * with the same files and one script (hack/image/web-files.ts).
 */
export function webFiles(): ReadonlyMap<string, WebFile> {
  return new Map([MAIN_SCRIPT, ...IMPORTED_SCRIPTS, ...STATIC_FILES].map((file) => [file, readWebFile(file)]));
}

function readWebFile(file: string): WebFile {
  const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
  return { type: TYPES[extname(file)] ?? '', body: file.endsWith('.ts') ? stripTypeScriptTypes(text) : text };
}
