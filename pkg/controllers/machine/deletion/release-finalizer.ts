import { withoutFinalizer } from '../../../apis/finalizers.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { waitFor } from '../../../work/reconcile/result.ts';
import type { MachineStep } from '../context.ts';

export const releaseFinalizer: MachineStep = {
  name: 'release-finalizer',

  run({ machine, pass, log }) {
    machine.metadata.finalizers = withoutFinalizer(machine, MACHINE_FINALIZER);
    pass.afterWrite(() => log.info({}, 'machine deleted'), 'record');
    return waitFor('the object to be removed');
  },
};
