import { isBeingDeleted, keyBeside } from '../../../../apis/meta.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { ClusterAPIMachineStep, StepDeps } from '../machine-pass.ts';
import { nodeCareOf } from './node-care.ts';
import { DRAINING, lastDeletingCondition, waits } from './waits.ts';

/** Finds out whether the Node is drained and deleted; see nodeCareOf. */
export function careStep({ machines, externals }: Pick<StepDeps, 'machines' | 'externals'>): ClusterAPIMachineStep {
  return {
    name: 'care',
    run(pass) {
      const { cluster, nodeCluster } = pass;
      const reference = cluster.spec?.controlPlaneRef;
      const controlPlane = reference === undefined ? undefined : externals.find(cluster, reference);
      if (controlPlane?.kind === 'reading' && !isBeingDeleted(cluster)) {
        const said = lastDeletingCondition(pass);
        const reading = `Unknown whether ${reference?.kind} ${reference?.name} exists: reading it`;
        return waits(pass, said?.reason ?? DRAINING, said?.message ?? reading);
      }
      const { name } = cluster.metadata;
      const ofCluster = machines
        .byIndex('cluster', name)
        .filter((one) => keyBeside(one, name) === keyBeside(cluster, name));
      pass.care = nodeCareOf({ cluster, nodeCluster, controlPlane, machines: ofCluster });
      return next;
    },
  };
}
