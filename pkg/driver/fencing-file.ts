import { open, readFile, rename } from 'node:fs/promises';

import { hasErrno } from './errno.ts';
import type { FencingRecord, FencingStore } from './fencing.ts';

/** Keeps fencing tokens in a JSON file, replaced as a whole. A file that is no JSON is an error, never taken as empty. */
export class FencingFile implements FencingStore {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async load(): Promise<readonly FencingRecord[]> {
    try {
      return JSON.parse(await readFile(this.#path, 'utf8')) as FencingRecord[]; // only ever written by `save`
    } catch (err) {
      if (hasErrno(err, 'ENOENT')) return [];
      throw new Error(`reading fencing tokens from ${this.#path}`, { cause: err });
    }
  }

  async save(records: readonly FencingRecord[]): Promise<void> {
    const temporary = `${this.#path}.new`;
    const file = await open(temporary, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(records));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, this.#path);
  }
}
