import type { ListedWorld } from '../listed-world.ts';
import { MIRANTIS_FLAGS } from './controllers/flags.ts';

export const MIRANTIS_LISTED: ListedWorld = {
  name: 'mirantis',
  flags: MIRANTIS_FLAGS,
  load: async () => (await import('./world.ts')).MIRANTIS,
  described: [],
};
