import { isBeingDeleted } from '../../../../apis/meta.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { ClusterAPIMachineStep, StepDeps } from '../machine-pass.ts';

/** Notes what the data Secret lacks. Nobody needs the data of a machine that has started. */
export function dataSecretStep({ dataSecrets }: Pick<StepDeps, 'dataSecrets'>): ClusterAPIMachineStep {
  return {
    name: 'data-secret',
    async run(pass) {
      const { machine, signal } = pass;
      const { dataSecretName = '' } = machine.spec.bootstrap ?? {};
      const isStarted = machine.status.initialization?.infrastructureProvisioned === true;
      if (dataSecretName === '' || isStarted || isBeingDeleted(machine)) return next;
      const { namespace = '' } = machine.metadata;
      pass.dataSecret = await dataSecrets.troubleWith({ namespace, name: dataSecretName }, signal);
      return next;
    },
  };
}
