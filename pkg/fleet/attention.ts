/** Whether an object is as requested, on its way there, or waits for a user. */
export type Attention = 'ok' | 'progressing' | 'attention';

/** Reasons of machines that continue by themselves, as `explain` gives them. Any other one needs attention. */
const BY_THEMSELVES: ReadonlySet<string> = new Set([
  'Creating',
  'Initializing',
  'WaitingForNode',
  'NodeNotReady',
  'NodeNotUsable',
  'Terminating',
  'DeletionRequested',
  'LocatingVM',
  'Draining',
  'DetachingVolumes',
  'DeletingVM',
  'DeletingNode',
  'Releasing',
  'CandidateForUpdate',
  'DrainingForUpdate',
  'InPlaceUpdating',
  'InPlaceUpdateSuccessful',
  'PreparingDeletion',
  'PreparedDeletion',
  'AbortingDeletion',
  'MaintenanceRequested',
]);
const WELL: ReadonlySet<string> = new Set(['Running', 'Available']);

export function attentionOf({ reason }: { readonly reason: string }): Attention {
  if (WELL.has(reason)) return 'ok';
  return BY_THEMSELVES.has(reason) ? 'progressing' : 'attention';
}
