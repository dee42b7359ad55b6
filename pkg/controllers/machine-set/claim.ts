import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { machines, machineSets } from '../../kube/client/resource.ts';
import { adoptPatch, controllerReference, releasePatch, sortByClaim } from '../../work/reconcile/ownership.ts';
import { mayAdopt } from '../replicas/may-adopt.ts';
import { patchPresent } from '../replicas/patch-each.ts';
import { CONTROLLER_INDEX, NO_CONTROLLER } from '../../operator/indexes/owner-index.ts';
import { next } from '../../work/reconcile/result.ts';
import type { Collaborators, MachineSetDeps, SetStep } from './step.ts';

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
 * Anyone who is not adopted or released now is so by the retry: an error other than "not found" or a refusal is thrown. One that may not be adopted
 * counts as if it were: of many, as after a restore, there would soon be twice as many.
 */
export const claim = (deps: Pick<Collaborators, 'machines' | 'reader' | 'writer' | 'claims'>): SetStep => ({
  name: 'claim',
  async run(pass) {
    const { key, object: set, signal } = pass;
    const { adopt, release } = sortByClaim(set, [
      ...deps.machines.byIndex(CONTROLLER_INDEX, set.metadata.uid),
      ...deps.machines.byIndex(CONTROLLER_INDEX, NO_CONTROLLER),
    ]);
    const held = await deps.claims.each(key, release, (machine) =>
      patchPresent(deps.writer, machines, machine, releasePatch(machine, set.metadata.uid), signal),
    );
    pass.refusal ??= held.text;
    if (adopt.length === 0 || !(await mayAdopt(deps.reader, machineSets, set, signal))) return next;

    const reference = controllerReference(set, API_VERSION, 'MachineSet');
    const refused = await deps.claims.each(key, adopt, (machine) =>
      patchPresent(deps.writer, machines, machine, adoptPatch(machine, reference), signal),
    );
    pass.unadopted = refused.objects.length;
    pass.refusal ??= refused.text;
    return next;
  },
});
