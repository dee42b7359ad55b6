import { mirantis } from '../../controllers/mirantis/index.ts';
import { isMirantis, MIRANTIS_KINDS, WITHOUT_SETTINGS } from '../../controllers/mirantis/kinds.ts';
import type { ServedWorld } from '../../controllers/world.ts';
import { MIRANTIS_ROLES } from './roles.ts';

/** The front end for Mirantis Container Cloud. */
export const MIRANTIS: ServedWorld = {
  name: 'mirantis',
  kinds: MIRANTIS_KINDS,
  alsoReads: (process) =>
    isMirantis(process) ? { classes: {}, labelPolicies: {}, secrets: { optionalFor: WITHOUT_SETTINGS } } : {},
  roles: MIRANTIS_ROLES,
  controllers: (operator) => (isMirantis(operator.config) ? [mirantis(operator)] : []),
};
