import { readBootstrap } from '../../api/bootstrap.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { ClusterAPIMachineStep } from '../machine-pass.ts';
import { observeObject, type ObserveDeps } from './observe-object.ts';

/** Takes over what the bootstrap object reports: the name of the data Secret. */
export function bootstrapStep(deps: ObserveDeps): ClusterAPIMachineStep {
  return {
    name: 'bootstrap',
    async run(pass) {
      const { machine } = pass;
      const reference = machine.spec.bootstrap?.configRef;
      pass.bootstrap = await observeObject(deps, pass, reference, readBootstrap);
      const known = machine.spec.bootstrap?.dataSecretName;
      // It says that a bootstrap provider has done its work: who gives the Secret has none.
      if (reference === undefined) return next;
      if (known !== undefined && known !== '') {
        machine.status.initialization = { ...machine.status.initialization, bootstrapDataSecretCreated: true };
        return next;
      }
      if (pass.bootstrap.kind !== 'found' || !pass.bootstrap.report.created) return next;
      const { dataSecretName } = pass.bootstrap.report;
      if (dataSecretName === undefined) {
        pass.problems.push(
          `${reference.kind} ${reference.name} reports that its data Secret is created, but not its name: wait, or check its provider`,
        );
        return next;
      }
      machine.spec.bootstrap = { ...machine.spec.bootstrap, dataSecretName };
      machine.status.initialization = { ...machine.status.initialization, bootstrapDataSecretCreated: true };
      return next;
    },
  };
}
