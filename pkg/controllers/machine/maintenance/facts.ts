import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { MAINTENANCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { frontEndField } from '../../machine-facts/front-end-field.ts';
import { hooksOf } from '../../machine-facts/hooks.ts';
import { howMaintenanceEnds, maintenanceOf, type MaintenanceReason } from '../../machine-facts/maintenance.ts';
import type { Fact } from '../explanation.ts';

/** What ends a maintenance, for whoever waits for it. */
function ending(machine: Machine): string {
  const field = frontEndField(machine, 'maintenance');
  return field === undefined ? `annotation ${MAINTENANCE_ANNOTATION} to be removed` : `${field} to be false`;
}

const KEPT = 'It is not replaced meanwhile, whatever its health.';
const GOES_ON = 'The machine is in maintenance when its Node is empty.';

/** Says of a machine that it is in maintenance, or on its way there or back. */
export const inMaintenance: Fact = (machine, rest) => {
  const explanation = rest();
  const told = maintenanceOf(machine);
  if (told === undefined || told.reason === 'NotInMaintenance') return explanation;
  if (told.reason === 'InvalidValue') return { ...explanation, message: `${explanation.message} ${told.message}` };
  // A machine that has failed before is replaced all the same.
  if (phaseOf(machine) === 'Failed') return explanation;
  const message =
    told.reason === 'InMaintenance' ? told.message.replace(howMaintenanceEnds(machine), '').trim() : told.message;
  const isWell = explanation.waitingFor === undefined;
  return {
    reason: told.reason === 'Requested' ? 'MaintenanceRequested' : told.reason,
    message: isWell ? message : `${message} ${explanation.message}`,
    waitingFor: waitingFor(machine, told.reason),
    nextStep: `${told.reason === 'InMaintenance' ? KEPT : GOES_ON} ${howMaintenanceEnds(machine)}`,
  };
};

function waitingFor(machine: Machine, reason: MaintenanceReason): string {
  switch (reason) {
    case 'WaitingForHooks':
      return `annotations ${hooksOf(machine, 'maintenance').join(', ')} to be removed by their owners`;
    case 'Draining':
    case 'DrainBlocked':
      return 'the pods to leave';
    case 'DrainFailed':
      return 'the next drain retry';
    case 'InMaintenance':
      return ending(machine);
    case 'UncordonFailed':
      return 'the API server to allow it';
    case 'Requested':
    case 'InvalidValue':
    case 'NotInMaintenance':
      return 'the machine controller';
  }
}
