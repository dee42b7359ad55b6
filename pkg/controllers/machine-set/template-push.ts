import { EFFECTIVE_CREATION_TIMEOUT_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine, MachineSpec } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../kube/client/patch.ts';
import { machines as machineResource } from '../../kube/client/resource.ts';
import { inPlaceChange } from '../replicas/in-place-change.ts';
import { isTerminating } from '../replicas/machine-state.ts';
import { patchPresent } from '../replicas/patch-each.ts';
import { creationTimeoutFor } from './new-machine.ts';
import { next } from '../../work/reconcile/result.ts';
import type { Collaborators, SetStep } from './step.ts';

/** Brings existing Machines in step with the parts of the template that need no new VM. An error other than "not found" or a refusal is thrown. */
export const pushTemplate = ({ writer, pushes }: Pick<Collaborators, 'writer' | 'pushes'>): SetStep => ({
  name: 'template-push',
  async run(pass) {
    const { key, object: set, machines, signal } = pass;
    const changeOf = (machine: Machine) => templateChange(set, machine);
    const behind = machines.filter((machine) => changeOf(machine) !== undefined);
    const refused = await pushes.each(key, behind, (machine) => {
      const patch = mergePatchIfUnchanged(machine, { spec: changeOf(machine) });
      return patchPresent(writer, machineResource, machine, patch, signal);
    });
    pass.refusal ??= refused.text;
    return next;
  },
});

/**
 * The members of a Machine's spec that the template of its set has changed, as a merge patch; undefined when there are
 * none. A Machine on its way out only follows the class kind, without which its VM could not be deleted.
 */
export function templateChange(set: MachineSet, machine: Machine): MergePatch<MachineSpec> | undefined {
  const change = inPlaceChange(withOwnTimeout(set.spec.template?.spec ?? {}, machine), machine.spec);
  if (!isTerminating(machine) && phaseOf(machine) !== 'Failed') return change;
  return change?.class === undefined ? undefined : { class: change.class };
}

/** An effective creation timeout that a Machine was created with stays its own; the template must not take it back. */
function withOwnTimeout(template: MachineSpec, machine: Machine): MachineSpec {
  const own = creationTimeoutFor(machine.metadata.annotations?.[EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]);
  return own === undefined ? template : { ...template, creationTimeout: own };
}
