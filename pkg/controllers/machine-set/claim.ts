import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { refOf } from '../../apis/meta.ts';
import { ApiError, isNotFound } from '../../kube/client/errors.ts';
import { machines, machineSets } from '../../kube/client/resource.ts';
import { adoptPatch, controllerReference, releasePatch, sortByClaim } from '../../work/reconcile/ownership.ts';
import { atOnce } from '../replicas/at-once.ts';
import { mayAdopt } from '../replicas/may-adopt.ts';
import { patchEach } from '../replicas/patch-each.ts';
import { CONTROLLER_INDEX, NO_CONTROLLER } from '../../operator/indexes/owner-index.ts';
import { next } from '../../work/reconcile/result.ts';
import type { MachineSetDeps, SetStep } from './step.ts';

const RELEASES_AT_ONCE = 20;

/** What was claimed of which Machines, by the set as it was then. A pass asks several times, mostly of the same. */
const known = new WeakMap<MachineSet, { readonly of: readonly Machine[]; readonly claimed: readonly Machine[] }>();

/** The Machines of `set` as the cache shows them, nothing adopted or released. */
export function claimedMachines(deps: Pick<MachineSetDeps, 'machines'>, set: MachineSet): readonly Machine[] {
  const of = deps.machines.byIndex(CONTROLLER_INDEX, set.metadata.uid);
  const last = known.get(set);
  // Cached objects never change: the same set and the same array mean the same answer.
  if (last?.of === of) return last.claimed;
  const { claimed } = sortByClaim(set, of);
  known.set(set, { of, claimed });
  return claimed;
}

/**
 * Adopts the Machines that the set selects and nobody controls, and releases those that it controls and no longer selects.
 * Anyone who is not adopted or released now is so by the retry: any error but "not found" is thrown.
 */
export const claim = (deps: Pick<MachineSetDeps, 'machines' | 'reader' | 'writer'>): SetStep => ({
  name: 'claim',
  async run({ object: set, signal }) {
    const { adopt, release } = sortByClaim(set, [
      ...deps.machines.byIndex(CONTROLLER_INDEX, set.metadata.uid),
      ...deps.machines.byIndex(CONTROLLER_INDEX, NO_CONTROLLER),
    ]);
    await atOnce(RELEASES_AT_ONCE, release, (machine) => releaseMachine(deps, set, machine, signal));
    if (adopt.length === 0 || !(await mayAdopt(deps.reader, machineSets, set, signal))) return next;

    const reference = controllerReference(set, API_VERSION, 'MachineSet');
    await patchEach(deps.writer, machines, adopt, (machine) => adoptPatch(machine, reference), signal);
    return next;
  },
});

async function releaseMachine(
  { writer }: Pick<MachineSetDeps, 'writer'>,
  set: MachineSet,
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  const ref = refOf(machine);
  try {
    await writer.patch('change', machines, ref, releasePatch(machine, set.metadata.uid), { signal });
  } catch (err) {
    // Invalid: the Machine is on its way out, or another one of that name; it is not ours either way.
    if (!isNotFound(err) && !ApiError.is(err, 'Invalid')) throw err;
  }
}
