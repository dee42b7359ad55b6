import type { KubeObject } from '../../../apis/meta.ts';
import { reportedCondition, type ClusterAPICondition } from './condition.ts';
import { membersOf } from '../../../apis/members.ts';
import type { ContractVersion } from './contract.ts';
import { endpointIn, partsOf, type APIEndpoint } from './infrastructure.ts';

export interface ControlPlaneReport {
  /** Its API server has answered. */
  readonly initialized: boolean;
  /** It runs elsewhere: no Machines are made for it. */
  readonly isExternal: boolean;
  readonly controlPlaneEndpoint: APIEndpoint | undefined;
  /** Its condition Available, under the newer contract. */
  readonly available: ClusterAPICondition | undefined;
  /** Its condition Ready, under the older contract. */
  readonly ready: ClusterAPICondition | undefined;
}

export function readControlPlane(object: KubeObject, contract: ContractVersion): ControlPlaneReport {
  const { spec, status } = partsOf(object);
  const isNewer = contract === 'v1beta2';
  return {
    initialized: isNewer
      ? membersOf(status['initialization'])['controlPlaneInitialized'] === true
      : status['initialized'] === true,
    isExternal: status['externalManagedControlPlane'] === true,
    controlPlaneEndpoint: endpointIn(spec['controlPlaneEndpoint']),
    ready: reportedCondition(olderConditionsIn(status), 'Ready'),
    available: isNewer ? reportedCondition(status['conditions'], 'Available') : undefined,
  };
}

/** Where an object of either contract has the conditions of the older one. */
function olderConditionsIn(status: Readonly<Record<string, unknown>>): unknown {
  return membersOf(membersOf(status['deprecated'])['v1beta1'])['conditions'] ?? status['conditions'];
}
