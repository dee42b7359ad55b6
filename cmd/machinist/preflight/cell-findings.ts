import { CELL_REPLICA_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../../pkg/apis/wire.ts';
import { holderOf } from '../../../pkg/kube/leader/lease.ts';
import { counted, type Finding, type QueryResult } from './findings.ts';

/** What is said of a cell. */
export function cellFinding(cell: string, status: Finding['status'], what: string, remedy?: string): Finding {
  return ofCell(cell, { check: 'cells', status, detail: what, ...(remedy !== undefined && { remedy }) });
}

/** The same finding, of one cell. */
export function ofCell(cell: string, finding: Finding): Finding {
  return { ...finding, cell, detail: `${cell}: ${finding.detail}` };
}

/** Which namespaces are selected. */
export function cellsFinding(selector: string, selected: QueryResult<readonly unknown[]>): Finding {
  const check = 'cells';
  if ('error' in selected) {
    const detail = `namespaces cannot be listed: ${selected.error}`;
    return {
      check,
      status: 'fail',
      detail,
      remedy: 'kubectl apply -f deploy/rbac/cells.yaml, after adapting the subjects',
    };
  }
  const { length } = selected.value;
  const detail = `--cells=${selector} selects ${length === 0 ? 'no namespace' : counted(length, 'namespace', 'namespaces')}`;
  if (length > 0) return { check, status: 'ok', detail };
  return { check, status: 'warn', detail, remedy: 'label the namespaces that are to be managed, or correct --cells' };
}

/** Whether the replicas that live divide the namespaces as this one would. */
export function replicaFindings(live: readonly Lease[], shards: number): readonly Finding[] {
  const check = 'leases';
  const others = live.filter(({ metadata }) => metadata.labels?.[CELL_REPLICA_LABEL] !== String(shards));
  if (others.length === 0) {
    const running = `${counted(live.length, 'replica runs', 'replicas run')} with --cell-shards=${shards}`;
    return [{ check, status: 'ok', detail: live.length === 0 ? 'no replica is running' : running }];
  }
  return others.map((lease) => ({
    check,
    status: 'fail',
    detail: `replica ${holderOf(lease)} has --cell-shards=${lease.metadata.labels?.[CELL_REPLICA_LABEL] ?? ''}, not ${shards}: a process with these flags takes no shard while it runs`,
    remedy: 'set the same --cell-shards, or stop the other replicas first',
  }));
}

/** A server that does not answer, or not as an API server does. */
export function unreachableTargetFinding(cell: string, server: string, why: string): Finding {
  return cellFinding(
    cell,
    'fail',
    `request to ${server} failed: ${why}`,
    'check the kubeconfig and its credentials, and the network between the manager and the target cluster',
  );
}

/**
 * Cells whose target cluster belongs to another one: to the one that holds its Lease, which `holderOfUID` knows, or else to the first that
 * comes. By cell.
 */
export function sameTargetFindings(
  cells: readonly { readonly cell: string; readonly uid: string }[],
  holderOfUID: (uid: string) => string | undefined,
): ReadonlyMap<string, Finding> {
  const shared = [...Map.groupBy(cells, ({ uid }) => uid)].filter(([, same]) => same.length > 1);
  return new Map(
    shared.flatMap(([uid, same]) => {
      const names = same.map(({ cell }) => cell).toSorted();
      const holder = names.find((name) => name === holderOfUID(uid)) ?? names[0];
      return names
        .filter((name) => name !== holder)
        .map((name) => [
          name,
          cellFinding(
            name,
            'fail',
            `its target cluster is that of namespace ${holder ?? ''}, too; nothing is done there for this one`,
            'correct the kubeconfig of one of them',
          ),
        ]);
    }),
  );
}
