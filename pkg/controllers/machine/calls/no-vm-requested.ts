import { nodeNameOf, phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { CREATION_SENT_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { wasNeverRequested } from '../../machine-facts/status.ts';
import type { MachineActivities } from './results.ts';

/** Whether nothing can have been asked of a provider for this Machine: it has no VM, and its deletion needs no driver. */
export function noVMWasRequested(activities: Pick<MachineActivities, 'get'>, observed: Machine): boolean {
  const { metadata, spec, status } = observed;
  if (activities.get(metadata.uid, 'create') !== undefined) return false;
  if (metadata.annotations?.[CREATION_SENT_ANNOTATION] !== undefined) return false;
  if (nodeNameOf({ metadata }) !== '' || providerIDOf({ spec }) !== '') return false;
  return wasNeverRequested(observed) || (phaseOf(observed) === '' && status?.lastOperation === undefined);
}
