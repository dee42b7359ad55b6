import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { removeKubeletLeftovers } from './kubelet-leftovers.ts';
import { LOG_FILE } from './log-files.ts';
import type { LocalVM } from './vm.ts';

/**
 * Prefix of a folder that is being removed; what is found under it after a crash is removed too. No machine's folder begins
 * like this: an id begins with the name of a Machine.
 */
const DELETED = '.deleted-';
/** What the folder of a machine may be called: one segment of a path, neither hidden nor a way up. */
const ID = /^[a-z0-9][a-z0-9.-]*$/;

/** The folders of the local machines, one each: vm.json and what its kubelet writes. */
export class VMFolders {
  readonly #directory: string;

  constructor(stateDirectory: string) {
    this.#directory = join(stateDirectory, 'vms');
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
  }

  /** The folder of a machine. Throws for an id that would lead elsewhere. */
  path(id: string): string {
    if (!ID.test(id)) throw new Error(`${JSON.stringify(id)} cannot be the name of the folder of a machine`);
    return join(this.#directory, id);
  }

  /** Every machine that has a folder. Finishes removals that a crash has cut off. */
  load(): readonly LocalVM[] {
    const names = readdirSync(this.#directory);
    for (const name of names.filter((n) => n.startsWith(DELETED)))
      rmSync(join(this.#directory, name), { recursive: true });
    return names
      .filter((name) => ID.test(name))
      .map((id) => this.#read(id))
      .filter((vm) => vm !== undefined);
  }

  /** Writes vm.json, as a whole or not at all; makes the folder if there is none. */
  save(vm: LocalVM): void {
    mkdirSync(this.path(vm.id), { recursive: true, mode: 0o700 });
    const file = join(this.path(vm.id), 'vm.json');
    writeFileSync(`${file}.new`, `${JSON.stringify(vm, undefined, 2)}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }

  /** Removes a machine's folder and what its kubelet, which has ended, left elsewhere; after a crash in the middle all the same. */
  remove(id: string): void {
    const log = join(this.path(id), LOG_FILE);
    removeKubeletLeftovers([log, `${log}.1`]);
    const doomed = join(this.#directory, `${DELETED}${id}`);
    if (existsSync(this.path(id))) renameSync(this.path(id), doomed);
    rmSync(doomed, { recursive: true, force: true });
  }

  /**
   * A folder without vm.json was made by a creation that got no further: nothing was started from it. One with the vm.json of
   * another is what an earlier version, whose prefix was `deleted-`, did not get to remove.
   */
  #read(id: string): LocalVM | undefined {
    const file = join(this.path(id), 'vm.json');
    if (existsSync(file)) {
      const vm = JSON.parse(readFileSync(file, 'utf8')) as LocalVM; // only ever written by `save`
      if (vm.id === id) return vm;
    }
    this.remove(id);
    return undefined;
  }
}
