import {
  CREATION_SENT_ANNOTATION,
  DEFAULT_PRIORITY,
  NODE_LABEL,
  PRIORITY_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { DriverError } from '../../../driver/error.ts';
import { next } from '../../../work/reconcile/result.ts';
import type { Collaborators } from '../collaborators.ts';
import type { Launched, MachineStep } from '../context.ts';
import { refuseVM } from './launch.ts';

/**
 * Records which VM this machine has: provider id, the Node's name (with a target cluster), and a priority for scaling down
 * where the machine has none. A driver that does not tell both is asked again later; what it has made may not show before.
 */
export const identity = (deps: Pick<Collaborators, 'clock' | 'calls' | 'unanswered' | 'vmClasses'>): MachineStep => ({
  name: 'identity',

  run(ctx) {
    const { machine, nodes, launched, resolved } = ctx;
    if (launched === undefined || resolved === undefined) return next;
    const { providerID, nodeName } = launched;
    if (providerID === '' || (nodes !== undefined && nodeName === '')) {
      const error = whatIsMissing(launched);
      deps.unanswered.ended(machine, error, deps.clock.monotonicMs());
      return refuseVM(deps, ctx, resolved, error, 'the driver to return the VM');
    }
    const { metadata, spec } = machine;
    spec.providerID = providerID;
    if (nodes !== undefined) metadata.labels = { ...metadata.labels, [NODE_LABEL]: nodeName };
    if ((metadata.annotations?.[PRIORITY_ANNOTATION] ?? '') === '') {
      metadata.annotations = { ...metadata.annotations, [PRIORITY_ANNOTATION]: DEFAULT_PRIORITY };
    }
    delete metadata.annotations?.[CREATION_SENT_ANNOTATION];
    deps.vmClasses.record(machine);
    return next;
  },
});

/** A Machine may have been created with a provider id that is no VM's. */
function whatIsMissing({ how, providerID }: Launched): DriverError {
  return how === 'known'
    ? new DriverError(
        'NotFound',
        `no VM with ID ${providerID} (spec.providerID); correct the field, or remove it to create a new VM`,
      )
    : new DriverError('Internal', `driver returned no ${providerID === '' ? 'provider id' : 'node name'}`, {
        unanswered: how === 'created',
      });
}
