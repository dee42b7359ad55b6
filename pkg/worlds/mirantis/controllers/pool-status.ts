import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { ProviderCondition } from '../api/machine.ts';
import type { MachinePool, PoolStatus } from '../api/pool.ts';
import { listed } from './listed.ts';
import type { Problem } from './field-reader.ts';

export interface MachinePoolFacts {
  readonly pool: MachinePool;
  /** Undefined: there is none. */
  readonly deployment: MachineDeployment | undefined;
  /** What keeps us from doing what is asked for. */
  readonly problems: readonly Problem[];
}

/** The members that are ours of the status of a pool. */
export function poolStatusOf(known: MachinePoolFacts): {
  [Member in keyof PoolStatus]-?: PoolStatus[Member] | undefined;
} {
  const { pool, deployment } = known;
  const { replicas = 0, readyReplicas = 0, updatedReplicas = 0 } = deployment?.status ?? {};
  const others = listed(pool.status?.conditions).filter(({ type }) => type !== 'LCM');
  return {
    observedGeneration: pool.metadata.generation,
    replicas,
    readyReplicas,
    updatedReplicas,
    conditions: [{ type: 'LCM', ...lcm(known) }, ...others],
  };
}

function lcm({ deployment, problems }: MachinePoolFacts): Omit<ProviderCondition, 'type'> {
  const told = (ready: boolean, message: string): Omit<ProviderCondition, 'type'> => ({ ready, message });
  if (problems.length > 0) return told(false, problems.join('; '));
  if (deployment === undefined) return told(false, 'The MachineDeployment is about to be created');
  if (isBeingDeleted(deployment)) return told(false, 'The MachineDeployment is being deleted');
  const { metadata, spec, status = {} } = deployment;
  const { replicas: asked = 0 } = spec;
  const { replicas = 0, readyReplicas = 0, updatedReplicas = 0, observedGeneration = 0, failedMachines = [] } = status;
  const isSeen = observedGeneration >= (metadata.generation ?? 0);
  const isDone = isSeen && [replicas, readyReplicas, updatedReplicas].every((count) => count === asked);
  const counts = `${readyReplicas} of ${asked} Machines are ready, ${updatedReplicas} are up to date`;
  const [failed] = failedMachines;
  const why = [
    failed && `Machine ${failed.name}: ${failed.lastOperation?.description ?? 'has failed'}`,
    ...(status.conditions ?? []).filter(isTelling).map(({ type, message }) => `${type}: ${message}`),
  ];
  const reasons = isDone ? [] : why.filter((reason) => reason !== undefined);
  return told(isDone, [counts, ...reasons].join('; '));
}

/** Whether a condition says what keeps a MachineDeployment from getting on. */
function isTelling({ type, status, message = '' }: { type: string; status: string; message?: string }): boolean {
  if (message === '') return false;
  return type === 'Progressing' ? status !== 'True' : type !== 'Available' && status === 'True';
}
