import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { fromTimestamp } from '../../../clock/clock.ts';

/** So many VMs of a class are deleted in one round without being asked, however small the class is. */
const FLOOR = 3;
/** Of the VMs that the class's list shows. */
const SHARE = 0.1;
/** A permission that lasts longer would be forgotten. */
const LONGEST_RELEASE_MS = 86_400_000;

/** Whether somebody has allowed to delete more VMs of a class than the limit; what is wrong with the permission else. */
export type Release = 'given' | 'none' | 'malformed' | 'expired' | 'too-long';

/** How many VMs of a class with `listed` VMs may be proved to be without a Machine in one round and still be deleted. */
export function orphanLimit(listed: number): number {
  return Math.max(FLOOR, Math.floor(listed * SHARE));
}

/** What the annotation of a MachineClass permits at this moment. */
export function releaseOf({ metadata }: Pick<MachineClass, 'metadata'>, nowMs: number): Release {
  const text = metadata.annotations?.[DELETE_ORPHAN_VMS_UNTIL_ANNOTATION];
  if (text === undefined) return 'none';
  const untilMs = fromTimestamp(text);
  if (untilMs === undefined) return 'malformed';
  if (untilMs <= nowMs) return 'expired';
  return untilMs - nowMs > LONGEST_RELEASE_MS ? 'too-long' : 'given';
}
