import { LISTED_WORLDS } from '../../../pkg/worlds/index.ts';
import type { GeneratedWorld } from './generated-world.ts';

const FILES = LISTED_WORLDS.map(
  ({ name }): Promise<Readonly<Record<string, GeneratedWorld>>> => import(`./${name}.ts`),
);

/** What manifests and pages are generated of, for all APIs that are served beside ours: each has a file here by its name, with one export. */
export const WORLDS: readonly GeneratedWorld[] = (await Promise.all(FILES)).flatMap((file) => Object.values(file));
