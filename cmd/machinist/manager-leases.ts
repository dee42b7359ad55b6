import { CELL_REPLICA_LABEL, CELL_TARGET_LABEL, CELL_WORKLOAD_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../pkg/apis/wire.ts';
import { fromTimestamp } from '../../pkg/base/clock/clock.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import type { Reader } from '../../pkg/kube/client/client.ts';
import { leases } from '../../pkg/kube/client/resource.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../../pkg/kube/leader/names.ts';
import { shardOfLease } from '../../pkg/operator/cells/lease-names.ts';
import type { CommandCluster } from './command-cluster.ts';
import type { ManagerOptions } from './options.ts';

/** The Leases of a manager with cells. */
export interface CellLeases {
  /** In which the replicas show that they live, and how many shards they divide. */
  readonly replicas: readonly Lease[];
  /** Under which they manage the cells, by shard. */
  readonly shards: ReadonlyMap<number, Lease>;
}

/** The Leases of a manager. */
export interface ManagerLeases {
  /** Of a process of one namespace. */
  readonly leases: readonly Lease[];
  /** Of processes with cells; absent: there are none. */
  readonly cellLeases?: CellLeases;
  /** Where managers with cells have theirs, when none are where they were looked for. */
  readonly elsewhere?: readonly string[];
}

/** The Leases in the namespace of the manager. Throws ApiError. `elsewhere`: where others are, if that was looked up before. */
export async function readManagerLeases(
  cluster: CommandCluster,
  { managerNamespace = '' }: Pick<ManagerOptions, 'managerNamespace'>,
  { timeoutMs, elsewhere }: { readonly timeoutMs: number; readonly elsewhere?: readonly string[] | undefined },
): Promise<ManagerLeases> {
  const namespace = managerNamespace === '' ? cluster.namespace : managerNamespace;
  const { reader } = cluster;
  const limits = { timeoutMs };
  const named = await Promise.all(
    [MANAGER_LEASE, MACHINE_LEASE].map(
      async (name) => await reader.get(leases, { namespace, name }, limits).catch(nothingIfNotFound),
    ),
  );
  const found = named.filter((lease) => lease !== undefined);
  const nowMs = cluster.now();
  if (found.some((lease) => isRenewed(lease, nowMs))) return { leases: found };
  const labelSelector = CELL_REPLICA_LABEL;
  const { items: replicas } = await reader.list(leases, { namespace, labelSelector, ...limits });
  if (replicas.length > 0) {
    // Each cell has more, for its target cluster and its workload clusters.
    const { items: all } = await reader.list(leases, {
      namespace,
      labelSelector: `!${CELL_TARGET_LABEL},!${CELL_WORKLOAD_LABEL}`,
      ...limits,
    });
    const shards = all.flatMap((lease) => {
      const index = shardOfLease(lease.metadata.name);
      return index === undefined ? [] : [[index, lease] as const];
    });
    return { leases: [], cellLeases: { replicas, shards: new Map(shards) } };
  }
  // Those that nobody renews may be left of a manager of this namespace alone, which is a cell of another one now.
  return { leases: found, elsewhere: elsewhere ?? (await namespacesOfManagers(reader, limits)) };
}

/** Where managers with cells have their Leases. Few may list those of all namespaces: it is a hint, no more. Never rejects. */
async function namespacesOfManagers(
  reader: Reader,
  limits: { readonly timeoutMs: number },
): Promise<readonly string[]> {
  const how = { labelSelector: CELL_REPLICA_LABEL, ...limits };
  const { items } = await reader.list(leases, how).catch(() => ({ items: [] as Lease[] }));
  return [...new Set(items.map((lease) => lease.metadata.namespace ?? ''))].toSorted();
}

/** Whether the holder of a Lease has renewed it of late. */
export function isRenewed({ spec = {} }: Lease, nowMs: number): boolean {
  const { holderIdentity = '', renewTime, leaseDurationSeconds = 0 } = spec;
  const renewedMs = Math.max(0, nowMs - (fromTimestamp(renewTime) ?? nowMs));
  return holderIdentity !== '' && renewedMs <= 2 * leaseDurationSeconds * 1_000;
}

function nothingIfNotFound(err: unknown): undefined {
  if (ApiError.is(err, 'NotFound', 'NotServed')) return undefined;
  throw err;
}
