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
   * directory of mode 0700 and moved: between bind and chmod it would be open to everybody. Rejects when somebody listens.
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

async function isListening(path: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(path);
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
