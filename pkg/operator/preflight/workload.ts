import type { Config } from '../config/config.ts';
import type { SettingsOf } from '../config/flag-section.ts';

/** What is run, as far as permissions go. */
export interface Workload {
  readonly controllers: ReadonlySet<string>;
  /** What the flags of other APIs say. */
  readonly of: SettingsOf;
  /** Those under which its controllers work. */
  readonly leases: ReadonlySet<string>;
  /** Whether the Leases are fought for. */
  readonly isElected: boolean;
  readonly hasTarget: boolean;
  readonly callsDrivers: boolean;
  readonly isAutoscaled: boolean;
  /** Whether it manages many namespaces, each with its target cluster. */
  readonly hasCells: boolean;
  /** Where the namespaces of cells are named: all of the process but what is in them, or what is in one of them. */
  readonly ofNamedCells?: 'process' | 'cell' | undefined;
  /** Of the Machines. */
  readonly namespace: string;
  /** Of the Leases. */
  readonly leaseNamespace: string;
}

/** What a process with these flags runs. */
export function workloadOf(
  { cells, controllers, leases, leader, autoscaler, clusters, of }: Config,
  known: Pick<Workload, 'hasTarget' | 'callsDrivers' | 'ofNamedCells'>,
): Workload {
  return {
    controllers,
    of,
    leases,
    isElected: leader.enabled,
    isAutoscaled: autoscaler !== undefined,
    hasCells: cells !== undefined,
    ofNamedCells: cells?.names === undefined ? undefined : 'process',
    namespace: clusters.namespace,
    leaseNamespace: leader.namespace,
    ...known,
  };
}
