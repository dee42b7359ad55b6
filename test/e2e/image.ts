import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { stagesOf } from '../../hack/image/dockerfile.ts';
import { type Installation, ROOT } from './program.ts';

/** Where the Dockerfile puts a program's bundle. */
const APP = '/app';

/**
 * The files of all images, laid out in folders by the steps of the Dockerfile, one folder a stage. No container engine is needed: packages are
 * those of the checkout, and the files of the base images are left out.
 */
export class Images implements AsyncDisposable {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Takes every step of the Dockerfile. Throws Error for a step that it does not know. */
  static async build(): Promise<Images> {
    const folder = await mkdtemp(join(tmpdir(), 'machinist-image-'));
    for (const { name, steps } of stagesOf(await readFile(join(ROOT, 'Dockerfile'), 'utf8'))) {
      let directory = '/';
      const inside = (path: string): string => join(folder, name, resolve(directory, path));
      for (const step of steps) {
        if (step.name === 'WORKDIR') directory = step.text;
        await mkdir(inside('.'), { recursive: true });
        if (step.name === 'COPY') await copy(folder, inside, step.text.split(' '));
        if (step.name === 'RUN') await runIn(inside('.'), step.text);
        if (!KNOWN.has(step.name)) throw new Error(`${step.name} ${step.text}: a step that this test does not know`);
      }
    }
    return new Images(folder);
  }

  /** That of a stage. */
  of(stage: string): Image {
    return new Image(join(this.#folder, stage, APP));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true });
  }
}

/** The files of an image. */
export class Image implements Installation {
  readonly root: string;
  readonly extension = 'js';

  constructor(root: string) {
    this.root = root;
  }

  /** All files, by their path in the image. */
  async files(): Promise<string[]> {
    const entries = await readdir(this.root, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(this.root.length + 1));
  }
}

const KNOWN = new Set(['WORKDIR', 'COPY', 'RUN', 'ENV', 'USER', 'ENTRYPOINT', 'CMD']);

/** COPY from the checkout, or from another stage. */
async function copy(folder: string, inside: (path: string) => string, words: readonly string[]): Promise<void> {
  const [, stage] = /^--from=(.*)$/.exec(words[0] ?? '') ?? [];
  const sources = words.slice(stage === undefined ? 0 : 1, -1);
  const to = inside(words.at(-1) ?? '');
  for (const source of sources) {
    const from = stage === undefined ? join(ROOT, source) : join(folder, stage, source);
    await cp(from, sources.length > 1 ? join(to, source) : to, { recursive: true });
  }
}

/** RUN; what `npm ci` would install lies in the checkout. */
async function runIn(directory: string, command: string): Promise<void> {
  if (command.startsWith('npm ci ')) {
    await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
    return;
  }
  await promisify(execFile)('sh', ['-c', command], { cwd: directory });
}
