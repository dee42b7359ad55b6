import type { ListedWorld } from '../listed-world.ts';
import { ironCoreMachines } from './api/resources.ts';
import { IRONCORE_FLAGS } from './controllers/flags.ts';

export const IRONCORE_LISTED: ListedWorld = {
  name: 'ironcore',
  flags: IRONCORE_FLAGS,
  load: async () => (await import('./world.ts')).IRONCORE,
  described: [
    { resource: ironCoreMachines, load: async () => (await import('./describe/machine.ts')).describedIronCoreMachine },
  ],
};
