import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { etcdDirectory } from '../../hack/control-plane/arguments.ts';
import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { halt } from '../processes/halt.ts';

/** The data of a control plane at one moment, to which it can be set back. */
export class Backup implements AsyncDisposable {
  readonly #plane: ControlPlane;
  readonly #directory: string;

  private constructor(plane: ControlPlane, directory: string) {
    this.#plane = plane;
    this.#directory = directory;
  }

  /** Copies the files of etcd while it stands still: what a crash would leave, which it starts from. */
  static async take(plane: ControlPlane): Promise<Backup> {
    const directory = await mkdtemp(join(tmpdir(), 'backup-'));
    try {
      await halt(plane.etcd);
      await cp(etcdDirectory(plane.directory), directory, { recursive: true });
    } finally {
      plane.etcd.kill('SIGCONT');
    }
    return new Backup(plane, directory);
  }

  /** Stops etcd and the API server, sets etcd back and starts both. `beforehand` is run when they do not run. */
  async restore(beforehand: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    await this.#restoreTo(this.#plane, beforehand);
  }

  /** Makes another control plane a copy of the one that was backed up. */
  async copyTo(plane: ControlPlane): Promise<void> {
    await this.#restoreTo(plane, () => Promise.resolve());
  }

  async #restoreTo(plane: ControlPlane, beforehand: () => Promise<void>): Promise<void> {
    const { apiserver, etcd, directory } = plane;
    await apiserver.stop('SIGKILL');
    await etcd.stop('SIGKILL');
    await beforehand();
    await rm(etcdDirectory(directory), { recursive: true });
    await cp(this.#directory, etcdDirectory(directory), { recursive: true });
    await etcd.start();
    await apiserver.start();
  }

  /** Sets etcd back while the API server goes on: none of its watches breaks, and its watch cache stays ahead of etcd. */
  async restoreEtcdAlone(): Promise<void> {
    const { etcd, directory } = this.#plane;
    await etcd.stop('SIGKILL');
    await rm(etcdDirectory(directory), { recursive: true });
    await cp(this.#directory, etcdDirectory(directory), { recursive: true });
    await etcd.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }
}
