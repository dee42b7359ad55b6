import type { Rule } from '../rule.ts';
import { BOUNDS, SECRETS } from './bounds.ts';
import { CREATION } from './creation.ts';
import { DELETION } from './deletion.ts';
import { FENCING } from './fencing.ts';
import { IDENTITY } from './identity.ts';
import { LISTS } from './lists.ts';
import { RESTART } from './restart.ts';
import { SERVICE } from './service.ts';

/** Everything that the contract asks of a driver and that can be asked of one that runs. */
export const RULES: readonly Rule[] = [SERVICE, CREATION, IDENTITY, DELETION, LISTS, BOUNDS, FENCING, RESTART, SECRETS]
  .flatMap((rules) => Object.entries(rules))
  .map(([name, rule]) => ({ name, ...rule }));
