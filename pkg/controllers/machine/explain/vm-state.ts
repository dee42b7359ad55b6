import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { dated, conditionOf, withCondition } from '../../../work/reconcile/conditions.ts';
import { next } from '../../../work/reconcile/result.ts';
import { VM_STATE } from '../../machine-facts/vm-states.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';

type Deps = Pick<Collaborators, 'clock' | 'vmStates'>;

/** With what was written last of Machines, by UID: the original's definition stores no such condition. */
type Own = Deps & { readonly written: Map<string, string> };

/** Shows the state of the VM in the provider's words, once a list has told it. Display only; never ends the pass. */
export const vmState = (collaborators: Deps): MachineStep => {
  const deps: Own = { ...collaborators, written: new Map() };
  return {
    name: 'vm-state',
    run(ctx) {
      show(deps, ctx);
      return next;
    },
    forget: (uid) => void deps.written.delete(uid),
  };
};

function show({ clock, vmStates, written }: Own, { machine, pass }: MachineContext): void {
  const { uid } = machine.metadata;
  const providerID = providerIDOf(machine);
  const state = providerID === '' ? undefined : vmStates.get(providerID)?.state;
  const { machineConditions } = machine.status;
  const shown = conditionOf(machineConditions, VM_STATE);
  if (state === undefined || state === shown?.reason || state === written.get(uid)) return;
  const message = `The provider lists VM ${providerID} in state ${state}.`;
  const current = { type: VM_STATE, status: 'True', reason: state, message } as const;
  // Its reason is what it is about: the state has lasted since then.
  machine.status.machineConditions = withCondition(machineConditions, dated(current, [], clock.now()));
  pass.afterWrite(() => void written.set(uid, state));
}
