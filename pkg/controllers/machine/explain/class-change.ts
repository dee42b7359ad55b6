import { classNameOf, providerIDOf, vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { noticeStep } from './condition-step.ts';
import { CLASS_CHANGE_IGNORED } from './conditions.ts';

const NOTICE = {
  name: 'class-change',
  type: CLASS_CHANGE_IGNORED,
  logged: 'ignored the new class of a machine with a VM',
} as const;

/**
 * Says that a machine names another MachineClass than its VM was requested with, which is not followed. Our CRDs refuse such a change; the
 * original's do not.
 */
export const classChange = ({ clock, vmClasses }: Pick<Collaborators, 'clock' | 'vmClasses'>): MachineStep =>
  noticeStep({ ...NOTICE, clock }, ({ machine }) => {
    vmClasses.watch(machine);
    const message = ignoredChangeOf(machine);
    return message === undefined
      ? 'none'
      : { reason: 'VMOfAnotherClass', message, fields: { class: classNameOf(machine) } };
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
