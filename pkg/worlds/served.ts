import type { ServedWorld } from '../controllers/world.ts';
import { LISTED_WORLDS } from './index.ts';

/** All APIs that are served beside ours, with their controllers. */
export const WORLDS: readonly ServedWorld[] = await Promise.all(LISTED_WORLDS.map((world) => world.load()));
