import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { validateMachineSet } from '../../apis/machine/v1alpha1/validation.ts';
import { machineSets } from '../../kube/client/resource.ts';
import { Finalizer } from '../../work/reconcile/finalizer.ts';
import { addFinalizer, OwnerController } from '../replicas/owner-controller.ts';
import { OwnerStatuses } from '../replicas/owner-status.ts';
import { release } from '../replicas/release.ts';
import { autoPreserve } from './auto-preserve.ts';
import { brake } from './brake.ts';
import { claim, claimedMachines } from './claim.ts';
import { deletion } from './deletion.ts';
import type { Collaborators, MachineSetDeps } from './deps.ts';
import type { SetPass } from './pass.ts';
import { nextExpiryInMs } from './preservation.ts';
import { ReplicaPlans } from './replica-plans.ts';
import { rolloutNotes } from './rollout-notes.ts';
import { deleteSurplus } from './scale-down.ts';
import { createMissing } from './scale-up.ts';
import { status } from './status.ts';
import { pushTemplate } from './template-push.ts';
import { settleWhenObserved } from './unseen-creations.ts';

/** Keeps as many Machines alive as each MachineSet asks for. */
export function machineSetController(deps: MachineSetDeps): OwnerController<MachineSet, SetPass> {
  const finalizer = new Finalizer(deps.writer, machineSets, MACHINE_FINALIZER);
  const plans = new ReplicaPlans(deps);
  const conditionsOf = (set: MachineSet) => set.status?.machineSetCondition;
  const kind = { kind: 'MachineSet', resource: machineSets, objects: deps.machineSets, conditionsOf } as const;
  const statuses = new OwnerStatuses({ ...deps, ...kind, finalizer });
  const given: Collaborators = { ...deps, finalizer, plans, statuses };
  const shown = status(given);
  settleWhenObserved(deps);
  return new OwnerController<MachineSet, SetPass>({
    objects: deps.machineSets,
    validate: validateMachineSet,
    begin: (pass) => ({ ...pass, machines: [] }),
    observe: (pass) => void (pass.machines = claimedMachines(deps, pass.object)),
    deletion: { work: [deletion(given)], end: [shown] },
    release: { work: [release({ ...deps, recorder: deps.safetyRecorder })], end: [] },
    invalid: { work: [], end: [shown] },
    upkeep: {
      work: [
        addFinalizer(finalizer),
        rolloutNotes(given),
        claim(given),
        pushTemplate(given),
        autoPreserve(given),
        deleteSurplus(given),
        createMissing(given),
        brake(given),
      ],
      end: [shown],
    },
    dueInMs: ({ machines }) => [nextExpiryInMs(machines, deps.clock.now())],
    forget(key, uid) {
      deps.expectations.forget(uid);
      plans.forget(uid);
      statuses.forget(key);
    },
  });
}
