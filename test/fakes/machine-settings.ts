import { MINUTE } from '../durations.ts';
import type { MachineSettings } from '../../pkg/controllers/machine-facts/settings.ts';

/** The defaults of the flags. */
export const SETTINGS: MachineSettings = {
  creationTimeoutMs: 20 * MINUTE,
  healthTimeoutMs: 10 * MINUTE,
  drainTimeoutMs: 120 * MINUTE,
  forcedDeletionTimeoutMs: 5 * MINUTE,
  inPlaceUpdateTimeoutMs: 20 * MINUTE,
  preserveTimeoutMs: 96 * 60 * MINUTE,
  maxEvictRetries: 360,
  pvDetachTimeoutMs: 2 * MINUTE,
  pvReattachTimeoutMs: 90_000,
  nodeConditions: ['KernelDeadlock', 'ReadonlyFilesystem', 'DiskPressure', 'NetworkUnavailable'],
  bootstrapTokenExtraGroups: '',
  resourceExhaustedRetryMs: 10 * MINUTE,
  zoneUnhealthyThreshold: 0.5,
};
