import { isDeepStrictEqual } from 'node:util';

import type { Machine, MachineStatus } from '../../apis/machine/v1alpha1/machine.ts';
import type { MergePatch } from '../../kube/client/patch.ts';
import { replacing } from '../../kube/client/merge-change.ts';

const OWNED_STATUS = [
  'addresses',
  'conditions',
  'lastOperation',
  'currentStatus',
  'lastKnownState',
  'machineConditions',
  'vmCapacity',
] as const;

/** What a pass changed in the status, as a merge patch of the fields that we own; undefined when nothing did. */
export function machineStatusChange(before: Machine, after: Machine): MergePatch<MachineStatus> | undefined {
  const old = before.status ?? {};
  const current = after.status ?? {};
  const changed = OWNED_STATUS.filter((member) => !isDeepStrictEqual(old[member], current[member]));
  if (changed.length === 0) return undefined;
  return Object.fromEntries(changed.map((member) => [member, replacing<unknown>(old[member], current[member])]));
}
