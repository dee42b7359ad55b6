import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { validateMachineDeployment } from '../../apis/machine/v1alpha1/validation.ts';
import { machineDeployments } from '../../kube/client/resource.ts';
import { Finalizer } from '../../work/reconcile/finalizer.ts';
import { addFinalizer, OwnerController } from '../replicas/owner-controller.ts';
import { OwnerStatuses } from '../replicas/owner-status.ts';
import { brake } from './brake.ts';
import { claim } from './sets/claim.ts';
import { deletion } from './deletion.ts';
import type { Collaborators, MachineDeploymentDeps } from './collaborators.ts';
import { handoff } from './scaling/handoff.ts';
import { hashLabel } from './sets/hash-label.ts';
import { NodeMarker } from './node-marks/node-marker.ts';
import { nodeMarks } from './rollout/node-marks.ts';
import type { DeploymentPass } from './pass.ts';
import { deadlineCheckMs } from './rollout/progressing-condition.ts';
import { release } from './release.ts';
import { Replacements } from './node-marks/replacements.ts';
import { rollBackOnRequest } from './rollout/rollback.ts';
import { rollOut } from './roll-out.ts';
import { scaleSets } from './scale-sets.ts';
import { status } from './status.ts';
import { syncNewSet } from './sync-new-set.ts';
import { observeDeployment } from './observed.ts';

/** Keeps the Machines of each MachineDeployment at its number and rolls them to its template. */
export function machineDeploymentController(
  deps: MachineDeploymentDeps,
): OwnerController<MachineDeployment, DeploymentPass> {
  const finalizer = new Finalizer(deps.writer, machineDeployments, MACHINE_FINALIZER);
  const conditionsOf = (deployment: MachineDeployment) => deployment.status?.conditions;
  const kind = { kind: 'MachineDeployment', resource: machineDeployments, objects: deps.machineDeployments } as const;
  const statuses = new OwnerStatuses({ ...deps, ...kind, conditionsOf, finalizer });
  const marker = new NodeMarker(deps);
  const replacements = new Replacements(deps);
  const given: Collaborators = { ...deps, finalizer, marker, replacements, statuses };
  const shown = status(given);
  return new OwnerController<MachineDeployment, DeploymentPass>({
    objects: deps.machineDeployments,
    validate: validateMachineDeployment,
    begin: (pass) => ({ ...pass, observed: observeDeployment(deps, pass.object) }),
    observe: (pass) => void (pass.observed = observeDeployment(deps, pass.object, pass.observed)),
    deletion: { work: [deletion(given)], end: [shown] },
    release: { work: [release(given)], end: [] },
    invalid: { work: [], end: [shown] },
    upkeep: {
      work: [
        addFinalizer(finalizer),
        brake(given),
        claim(given),
        hashLabel(given),
        handoff(given),
        syncNewSet(given),
        rollBackOnRequest(given),
        scaleSets(given),
        rollOut(given),
      ],
      end: [nodeMarks(given), shown],
    },
    dueInMs: ({ key, object, isRollout }) => [
      isRollout === true ? deadlineCheckMs(deps.machineDeployments.get(key) ?? object, deps.clock.now()) : undefined,
      marker.dueInMs(key),
      replacements.dueInMs(key),
    ],
    forget(key) {
      replacements.forget(key);
      statuses.forget(key);
    },
  });
}
