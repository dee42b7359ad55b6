import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';

/** A Unix socket that only its owner can open, also in the instant after it was made. */
export class PrivateSocket {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Lets `listen` bind a socket and puts it at `path`, in place of one that nobody listens on any more. It is bound in a
   * directory of mode 0700 and moved: between bind and chmod it would be open to everybody. Rejects when somebody listens, or may.
   */
  static async bind(path: string, listen: (path: string) => Promise<void>): Promise<PrivateSocket> {
    if (await isListening(path)) throw new Error(`another process is listening on ${path}`);
    await mkdir(dirname(path), { recursive: true });
    const directory = await mkdtemp(join(dirname(path), '.s'));
    const temporary = join(directory, 's');
    try {
      await listen(temporary);
      await chmod(temporary, 0o600);
      await rename(temporary, path);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
    return new PrivateSocket(path);
  }

  /** Nobody can connect any more; connections that exist go on. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}

/** What says that nobody listens: a socket that was left behind, or none. */
const NOBODY: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT']);

async function isListening(path: string): Promise<boolean> {
  return await new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code = '', message }: NodeJS.ErrnoException) => {
      if (NOBODY.has(code)) resolve(false);
      // Whoever listens may be too busy to answer, or may not be asked.
      else
        reject(
          new Error(
            `cannot determine whether another process is listening on ${path}: ${message}. Remove it if none is`,
          ),
        );
    });
  });
}
