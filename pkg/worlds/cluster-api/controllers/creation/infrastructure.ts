import { readInfrastructure } from '../../api/infrastructure.ts';
import type { DeprecatedStatus } from '../../api/machine.ts';
import { isBeingDeleted } from '../../../../apis/meta.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { MachinePass, ClusterAPIMachineStep } from '../machine-pass.ts';
import { observeObject, type ObserveDeps } from './observe-object.ts';

/**
 * Takes over what the infrastructure object reports: provider ID, addresses, failure domain, failures. Once provisioned, a Machine stays so. One
 * that is deleted before takes over the provider ID alone: its Node may have joined, and is to be drained.
 */
export function infrastructureStep(deps: ObserveDeps): ClusterAPIMachineStep {
  return {
    name: 'infrastructure',
    async run(pass) {
      const { machine } = pass;
      pass.infrastructure = await observeObject(deps, pass, machine.spec.infrastructureRef, readInfrastructure);
      if (pass.infrastructure.kind !== 'found') return next;
      const { report } = pass.infrastructure;
      showFailure(machine.status, report.failure);
      const was = machine.status.initialization?.infrastructureProvisioned === true;
      if (!report.provisioned && !was) {
        const isUnnamed = (machine.spec.providerID ?? '') === '';
        if (isBeingDeleted(machine) && isUnnamed && report.providerID !== undefined)
          machine.spec.providerID = report.providerID;
        return next;
      }
      // Without the id nobody knows which Node it is: there is more to come.
      if (report.providerID === undefined && (machine.spec.providerID ?? '') === '') return next;
      machine.spec.providerID = report.providerID ?? machine.spec.providerID ?? '';
      if (report.addresses.length > 0) machine.status.addresses = report.addresses;
      else delete machine.status.addresses;
      machine.status.initialization = { ...machine.status.initialization, infrastructureProvisioned: true };
      if (report.failureDomain !== undefined) machine.status.failureDomain = report.failureDomain;
      if (report.wantedFailureDomain !== undefined) machine.spec.failureDomain = report.wantedFailureDomain;
      return next;
    },
  };
}

function showFailure(
  status: MachinePass['machine']['status'],
  failure: { readonly reason: string; readonly message: string } | undefined,
): void {
  const {
    failureReason: _reason,
    failureMessage: _message,
    ...rest
  }: DeprecatedStatus = status.deprecated?.v1beta1 ?? {};
  if (failure === undefined && _reason === undefined && _message === undefined) return;
  const shown = failure === undefined ? {} : said(failure);
  status.deprecated = { ...status.deprecated, v1beta1: { ...rest, ...shown } };
}

/** Neither member may be empty. */
function said({ reason, message }: { readonly reason: string; readonly message: string }): DeprecatedStatus {
  return { ...(reason !== '' && { failureReason: reason }), ...(message !== '' && { failureMessage: message }) };
}
