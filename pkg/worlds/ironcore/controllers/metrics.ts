import type { Registry } from 'prom-client';

import { declaring } from '../../../base/metrics/declaring.ts';

export function ironCoreMetrics(registry: Registry) {
  const { gauge, histogram } = declaring(registry);
  return {
    calls: histogram('machinist_ironcore_runtime_call_duration_seconds', ['pool', 'method', 'code']).help(
      'Duration in seconds of calls to the runtime of an IronCore MachinePool, by result: OK, or a gRPC code.',
    ),
    machines: gauge('machinist_ironcore_runtime_machines', ['pool', 'owner']).help(
      'Machines in the last list of the runtime of an IronCore MachinePool, by owner: machine (a Machine in the pool), none (the Machine does not exist), former (of an earlier MachinePool of the same name), other (not created for this MachinePool, or without its labels).',
    ),
    served: gauge('machinist_ironcore_pool_served', ['pool']).help(
      'Whether a pool of --ironcore-pool is served by the leader (1), or another process renews its Lease (0).',
    ),
    contested: gauge('machinist_ironcore_pool_claimed_by_another', ['pool']).help(
      'Whether machines at the runtime of a MachinePool of IronCore are claimed by another cluster with the same UIDs, so that nothing is done there: 1, or 0.',
    ),
    kept: gauge('machinist_ironcore_machines_kept', ['pool']).help(
      'Machines at the runtime of an IronCore MachinePool that have no Machine but are kept: their Machine was not seen being deleted, there are too many at once, or they were created for a MachinePool that no longer exists.',
    ),
    missing: gauge('machinist_ironcore_machines_missing', ['pool']).help(
      'Machines of an IronCore MachinePool that are frozen because the runtime does not list their machines, although their deletion was not observed (reasons MachinesLost and WrongRuntime).',
    ),
    claimsHeld: gauge('machinist_ironcore_claims_held', ['pool']).help(
      'Volumes and NetworkInterfaces of IronCore that remain claimed by a Machine of a deleted MachinePool, because the deletion of its machine was not observed.',
    ),
  };
}

export type IronCoreMetrics = ReturnType<typeof ironCoreMetrics>;
