import type { World } from '../../operator/world.ts';
import { isMirantis, MIRANTIS_KINDS, WITHOUT_SETTINGS } from './kinds.ts';
import { MIRANTIS_ROLES } from './roles.ts';

/** The front end for Mirantis Container Cloud. */
export const MIRANTIS: World = {
  name: 'mirantis',
  kinds: MIRANTIS_KINDS,
  alsoReads: (process) =>
    isMirantis(process) ? { classes: {}, labelPolicies: {}, secrets: { optionalFor: WITHOUT_SETTINGS } } : {},
  roles: MIRANTIS_ROLES,
};
