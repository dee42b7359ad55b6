import { EFFECTIVE_CREATION_TIMEOUT_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine, MachineSpec } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../kube/client/patch.ts';
import { machines as machineResource } from '../../kube/client/resource.ts';
import { inPlaceChange } from '../replicas/in-place-change.ts';
import { isTerminating } from '../replicas/machine-state.ts';
import { patchEach } from '../replicas/patch-each.ts';
import { creationTimeoutFor } from './new-machine.ts';
import { next } from '../../work/reconcile/result.ts';
import type { MachineSetDeps, SetStep } from './step.ts';

/** Brings existing Machines in step with the parts of the template that need no new VM. Any error but "not found" is thrown. */
export const pushTemplate = ({ writer }: Pick<MachineSetDeps, 'writer'>): SetStep => ({
  name: 'template-push',
  async run({ object: set, machines, signal }) {
    const changeOf = (machine: Machine) => templateChange(set, machine);
    const behind = machines.filter((machine) => changeOf(machine) !== undefined);
    const patchOf = (machine: Machine) => mergePatchIfUnchanged(machine, { spec: changeOf(machine) });
    await patchEach(writer, machineResource, behind, patchOf, signal);
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
