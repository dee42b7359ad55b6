import {
  DEFAULT_PRIORITY,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PRIORITY_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { refOf } from '../../../apis/meta.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../../kube/client/patch.ts';
import { machineDeployments, machines } from '../../../kube/client/resource.ts';
import { next, requeue } from '../../../work/reconcile/result.ts';
import { patchEach } from '../../replicas/patch-each.ts';
import type { DeploymentStep, MachineDeploymentDeps } from '../step.ts';
import { marksDue, readHandoff, strayMarks } from './scaler-handoff.ts';

/** What a Machine carries that is not chosen. */
const UNMARKED = { [PRIORITY_ANNOTATION]: DEFAULT_PRIORITY, [MARKED_FOR_DELETION_TIME_ANNOTATION]: null };

/**
 * Marks the Machines that the autoscaler has chosen, so that they are the first to go when their set shrinks, tidies the list,
 * and takes back what is chosen no more. The marks come before any size: a process that takes over in between, also the original's, knows the victims. No set
 * may shrink before all are marked: the first error is thrown, and of a long list the rest is left to the next pass.
 */
export const handoff = ({ writer, clock }: Pick<MachineDeploymentDeps, 'writer' | 'clock'>): DeploymentStep => ({
  name: 'handoff',
  async run(pass) {
    const { object: deployment, observed, signal } = pass;
    const { sets } = observed;
    const owned = sets.flatMap(observed.machinesOf);
    const byName = new Map(owned.map((machine) => [machine.metadata.name, machine]));
    const { choices, annotations } = readHandoff(deployment, byName, clock.now());
    if (Object.keys(annotations).length > 0) {
      const patch = mergePatchIfUnchanged(deployment, { metadata: { annotations } });
      pass.object = await writer.patch('change', machineDeployments, refOf(deployment), patch, { signal });
    }
    // Were they left marked, the next change that their set is told of would take them along.
    const unmark = (machine: Machine) => mergePatchIfUnchanged(machine, { metadata: { annotations: UNMARKED } });
    await patchEach(writer, machines, strayMarks(owned, choices, sets), unmark, signal);
    const { marks, isAll } = marksDue(choices, sets);
    const missing = new Map(marks.map((mark) => [mark.machine, mark.missing]));
    const complete = (machine: Machine) => mergePatch(machine, { metadata: { annotations: missing.get(machine) } });
    await patchEach(writer, machines, [...missing.keys()], complete, signal);
    return isAll ? next : requeue(0, 'the rest of the chosen machines to be marked');
  },
});
