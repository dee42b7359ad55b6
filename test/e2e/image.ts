import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { type Installation, ROOT } from './program.ts';

/**
 * The files of the image, laid out in a folder as the Dockerfile does it: compiled programs, package.json, and of the packages
 * only those that production needs. A container engine is not needed.
 */
export class Image implements Installation, AsyncDisposable {
  readonly folder: string;
  readonly extension = 'js';

  private constructor(folder: string) {
    this.folder = folder;
  }

  get root(): string {
    return join(this.folder, 'dist');
  }

  /** Compiles the programs. */
  static async build(): Promise<Image> {
    const folder = await mkdtemp(join(tmpdir(), 'machinist-image-'));
    const compiler = join(ROOT, 'node_modules/.bin/tsc');
    const project = join(ROOT, 'tsconfig.build.json');
    await promisify(execFile)(compiler, ['-p', project, '--outDir', join(folder, 'dist')]);
    await cp(join(ROOT, 'package.json'), join(folder, 'package.json'));
    const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    for (const name of Object.keys(dependencies)) {
      const link = join(folder, 'node_modules', name);
      await mkdir(dirname(link), { recursive: true });
      await symlink(join(ROOT, 'node_modules', name), link);
    }
    return new Image(folder);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true });
  }
}
