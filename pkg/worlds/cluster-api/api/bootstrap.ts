import type { KubeObject } from '../../../apis/meta.ts';
import { reportedCondition, type ClusterAPICondition } from './condition.ts';
import { membersOf, nonEmptyText } from '../../../apis/members.ts';
import type { ContractVersion } from './contract.ts';
import { terminalFailureOf, type TerminalFailure } from './failure.ts';

/** What a bootstrap object says about the data that its machine starts with. */
export interface BootstrapReport {
  /** The Secret is there. */
  readonly created: boolean;
  readonly dataSecretName: string | undefined;
  readonly ready: ClusterAPICondition | undefined;
  readonly failure: TerminalFailure | undefined;
}

const LONGEST_NAME = 253;

export function readBootstrap(object: KubeObject, contract: ContractVersion): BootstrapReport {
  const status = membersOf(membersOf(object)['status']);
  const name = nonEmptyText(status['dataSecretName']);
  return {
    created:
      contract === 'v1beta2'
        ? membersOf(status['initialization'])['dataSecretCreated'] === true
        : status['ready'] === true,
    dataSecretName: name !== undefined && name.length <= LONGEST_NAME ? name : undefined,
    ready: reportedCondition(status['conditions'], 'Ready'),
    failure: terminalFailureOf(status),
  };
}
