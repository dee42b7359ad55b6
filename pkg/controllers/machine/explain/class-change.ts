import { classNameOf, providerIDOf, vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { withoutCondition, conditionOf, withCondition, dated } from '../../../work/reconcile/conditions.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { conditionStep } from './condition-step.ts';
import { CLASS_CHANGE_IGNORED } from './conditions.ts';

/**
 * Says that a machine names another MachineClass than its VM was requested with, which is not followed: condition and Event. Our CRDs
 * refuse such a change; the original's do not.
 */
export const classChange = ({ clock, vmClasses }: Pick<Collaborators, 'clock' | 'vmClasses'>): MachineStep =>
  conditionStep('class-change', ({ machine, pass, log }, reported) => {
    vmClasses.watch(machine);
    const { uid } = machine.metadata;
    const { machineConditions } = machine.status;
    const shown = conditionOf(machineConditions, CLASS_CHANGE_IGNORED);
    const message = ignoredChangeOf(machine);
    if (message === undefined) {
      reported.delete(uid);
      if (shown !== undefined)
        machine.status.machineConditions = withoutCondition(machineConditions, CLASS_CHANGE_IGNORED);
      return;
    }
    if (message === shown?.message || message === reported.get(uid)) return;
    const current = { type: CLASS_CHANGE_IGNORED, status: 'True', reason: 'VMOfAnotherClass', message } as const;
    machine.status.machineConditions = withCondition(machineConditions, dated(current, machineConditions, clock.now()));
    pass.event(CLASS_CHANGE_IGNORED, message);
    pass.afterWrite(() => {
      reported.set(uid, message);
      log.warn({ class: classNameOf(machine) }, 'ignored the new class of a machine with a VM');
    });
  });

/** Undefined: the machine names the class of its VM, or has none. */
function ignoredChangeOf(machine: Machine): string | undefined {
  const [used, named] = [vmClassNameOf(machine), classNameOf(machine)];
  if (used === named || (providerIDOf(machine) === '' && !isBeingDeleted(machine))) return undefined;
  return (
    `Field spec.class.name is ${JSON.stringify(named)}, but the VM was requested with MachineClass ${used}, which remains in use until the Machine is deleted. ` +
    `Set spec.class.name to ${used}; to use another class, delete this Machine.`
  );
}
