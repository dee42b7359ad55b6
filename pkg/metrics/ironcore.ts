import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** Declares the metrics of the runtimes of IronCore's pools in `registry`. */
export function ironCoreMetrics(registry: Registry) {
  const { gauge, histogram } = declaring(registry);
  return {
    calls: histogram(
      'machinist_ironcore_runtime_call_duration_seconds',
      'Seconds that a call to the runtime of a MachinePool of IronCore took, by what it ended with: OK, or a code of gRPC.',
      { labelNames: ['pool', 'method', 'code'] },
    ),
    machines: gauge(
      'machinist_ironcore_runtime_machines',
      'Machines that the runtime of a MachinePool of IronCore last showed, by whose they are: machine (of a Machine in the pool), none (their Machine is not there), former (the same, made for a MachinePool that is not there), other (not made for this MachinePool, or without the labels that say for whom).',
      ['pool', 'owner'],
    ),
    served: gauge(
      'machinist_ironcore_pool_served',
      'Whether a pool of --ironcore-pool is served by the process that leads: 1, or 0 while somebody else renews its Lease.',
      ['pool'],
    ),
    kept: gauge(
      'machinist_ironcore_machines_kept',
      'Machines at the runtime of a MachinePool of IronCore that have no Machine and are kept, because nobody has seen that it was to be deleted, because there are too many at once, or because they were made for a MachinePool that is not there.',
      ['pool'],
    ),
    missing: gauge(
      'machinist_ironcore_machines_missing',
      'Machines of a MachinePool of IronCore that are held as they are, because the runtime that answers does not show their machines and nobody has seen these go (reasons MachinesLost and WrongRuntime).',
      ['pool'],
    ),
    claimsHeld: gauge(
      'machinist_ironcore_claims_held',
      'Volumes and NetworkInterfaces of IronCore that stay claimed by a Machine of a MachinePool that is gone, because nobody has seen its machine go.',
      ['pool'],
    ),
  };
}

/** What is measured at the runtimes of pools. */
export type IronCoreMetrics = ReturnType<typeof ironCoreMetrics>;
