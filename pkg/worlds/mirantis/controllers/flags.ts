import type { FlagSection } from '../../../operator/config/flag-section.ts';
import { MANAGER_LEASE } from '../../../kube/leader/names.ts';

/** It has no flags: its objects have their settings. */
export const MIRANTIS_FLAGS: FlagSection = {
  heading: 'Mirantis Container Cloud',
  flags: {},
  leases: [{ lease: MANAGER_LEASE, needed: [], optional: ['mirantis'] }],
  settings: () => undefined,
};
