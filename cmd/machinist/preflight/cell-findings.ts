import { CELL_MOVES_TO_ANNOTATION, CELL_REPLICA_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Lease, Node } from '../../../pkg/apis/wire.ts';
import { CELL_CLIENT_NAME } from '../../../pkg/operator/config/cells.ts';
import { holderOf } from '../../../pkg/kube/leader/lease.ts';
import { ALL_NAMESPACES, NO_TARGET } from '../../../pkg/operator/cells/target-claims.ts';
import { targetLeaseName } from '../../../pkg/operator/cells/lease-names.ts';
import type { Permission } from '../../../pkg/operator/preflight/permissions.ts';
import { counted, type Finding, permissionFindings, type QueryResult } from './findings.ts';

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

/** What is said of the names of a cell's autoscalers; undefined: nothing is wrong with them. */
export function clientNameFinding(
  cell: string,
  clients: { readonly isNamed: boolean; readonly clash: string | undefined; readonly isAutoscaled: boolean },
): Finding | undefined {
  const { isNamed, clash, isAutoscaled } = clients;
  if (!isNamed) return undefined;
  if (!isAutoscaled) {
    const detail = `annotation ${CELL_CLIENT_NAME} has no effect without --autoscaler-grpc-address`;
    return cellFinding(cell, 'warn', detail, 'set --autoscaler-grpc-address, or remove the annotation');
  }
  return clash === undefined
    ? undefined
    : cellFinding(cell, 'fail', clash, 'correct the annotation of one of them; its autoscaler is rejected before');
}

/** Which namespaces are named. */
export function namedCellsFinding(names: readonly string[]): Finding {
  const detail = `--cell-namespaces names ${counted(names.length, 'namespace', 'namespaces')}`;
  return { check: 'cells', status: 'ok', detail };
}

/** A namespace that is named and cannot be read. */
export function unreadCellFinding(cell: string, why: string): Finding {
  const remedy =
    'kubectl apply -f deploy/rbac/cell.yaml -f deploy/cell-namespace.yaml, after adapting the namespace and the subjects';
  return cellFinding(cell, 'fail', `it does not exist, or its RoleBinding is missing: ${why}`, remedy);
}

/** A cell whose namespace has a manager of its own, by the Leases there. */
export function otherManagerFinding(cell: string, renewed: readonly Lease[]): Finding | undefined {
  const [lease] = renewed;
  if (lease === undefined) return undefined;
  const what = `another manager is running in the namespace: Lease ${lease.metadata.name} is held by ${holderOf(lease)}, and renewed`;
  return cellFinding(cell, 'fail', what, 'stop it; the cell does not start before');
}

/** What is missing in a namespace that is named; `user`: who is asked for. */
export function cellPermissionFindings(
  cell: string,
  user: string | undefined,
  missing: QueryResult<readonly Permission[]>,
): readonly Finding[] {
  return permissionFindings('control', user, missing)
    .filter(({ status }) => status !== 'ok')
    .map((finding) => ofCell(cell, finding));
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

/** A target cluster as a namespace has it by a Lease, or all of them, see TargetClaims. */
export interface KnownClaim {
  readonly lease: string;
  readonly holder: string;
  readonly isSelected: boolean;
  /** That namespace; of all of them, any. */
  readonly hasMachines: boolean;
}

/**
 * Cells in whose target cluster nothing would be done: it belongs to another namespace (the one that holds its Lease and needs it, or else the
 * first that comes), or it is another one than that of the Machines. By cell.
 */
export function targetFindings(
  cells: readonly { readonly cell: string; readonly uid: string }[],
  claims: readonly KnownClaim[],
  withMachines: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, Finding> {
  const ofAll = claims.filter(({ holder, hasMachines }) => holder === ALL_NAMESPACES && hasMachines);
  const firsts = new Map(
    [...Map.groupBy(cells, ({ uid }) => uid)].map(([uid, same]) => [uid, same.map(({ cell }) => cell).toSorted()[0]]),
  );
  return new Map(
    cells.flatMap(({ cell, uid }) => {
      const lease = targetLeaseName(uid);
      const former = claims.find((claim) => claim.holder === cell && claim.lease !== lease && claim.hasMachines);
      if (former !== undefined) return [[cell, changedTargetFinding(cell, former)]];
      const common = ofAll.find((claim) => claim.lease !== lease);
      const hasOwn = claims.some((claim) => claim.holder === cell);
      if (common !== undefined && !hasOwn && withMachines.has(cell)) return [[cell, formerTargetFinding(cell, common)]];
      const claim = claims.find((one) => one.lease === lease);
      const isHeld = claim !== undefined && (claim.isSelected || claim.hasMachines);
      if (isHeld && claim.holder === ALL_NAMESPACES) return [[cell, commonTargetFinding(cell, claim)]];
      const holder = isHeld ? claim.holder : firsts.get(uid);
      return holder === undefined || holder === cell ? [] : [[cell, takenTargetFinding(cell, holder)]];
    }),
  );
}

/** Why nothing would be done in the one target cluster of all cells; empty: nothing is against it. */
export function commonTargetFindings(uid: string, claims: readonly KnownClaim[]): readonly Finding[] {
  const check = 'cells';
  const lease = targetLeaseName(uid);
  const needed = claims.filter(({ isSelected, hasMachines }) => isSelected || hasMachines);
  const changed = needed.find((claim) => claim.holder === ALL_NAMESPACES && claim.lease !== lease);
  if (changed !== undefined) {
    const detail =
      '--target-kubeconfig leads to another target cluster than that of the Machines; nothing is done in either';
    const remedy = `correct it; or, if that is meant, ${deletionOf(changed)}, and set annotation ${CELL_MOVES_TO_ANNOTATION} of each namespace with Machines to ${uid}`;
    return [{ check, status: 'fail', detail, remedy }];
  }
  const own = needed.filter(({ holder, hasMachines }) => holder !== ALL_NAMESPACES && hasMachines);
  return own.map((claim) =>
    claim.lease === lease
      ? {
          check,
          status: 'fail',
          detail: `the cluster of --target-kubeconfig is the target or workload cluster of namespace ${claim.holder}; nothing is done there`,
          remedy: `correct the flag; or, if that is meant, ${deletionOf(claim)}`,
        }
      : ownTargetFinding(claim.holder, claim, uid),
  );
}

/** A cell that would have no target cluster, although its Machines have Nodes. */
export function noTargetFinding(cell: string): Finding {
  return cellFinding(
    cell,
    'fail',
    'its Machines have Nodes in a target cluster, or wait for them, and the flags name none for them; nothing is done for this cell',
    `name the target cluster; or, if that is meant, set annotation ${CELL_MOVES_TO_ANNOTATION} of the namespace to ${NO_TARGET}`,
  );
}

/** Nodes of the one target cluster of all cells that show no provider ID: new ones like them would belong to no Machine. */
export function unidentifiedNodesFinding(nodes: readonly Node[]): Finding | undefined {
  const [first, ...others] = nodes.filter(({ spec }) => (spec?.providerID ?? '') === '');
  if (first === undefined) return undefined;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return {
    check: 'cells',
    status: 'warn',
    detail: `Node ${first.metadata.name}${more} of the target cluster of all cells: no provider ID; a machine whose Node has none does not become Running`,
    remedy:
      'have the kubelet or a cloud controller manager set spec.providerID of Nodes, unless these are not of machines',
  };
}

/** In the words of TargetClaims, as the next ones. */
function ownTargetFinding(cell: string, claim: KnownClaim, uid: string): Finding {
  return cellFinding(
    cell,
    'fail',
    'its Machines have Nodes in a target cluster of its own; nothing is done for them',
    `start the manager with --cell-kubeconfig-secret; or, if it is the same cluster, ${deletionOf(claim)}; or, if they are to be replaced, do so, and set annotation ${CELL_MOVES_TO_ANNOTATION} of the namespace to ${uid}`,
  );
}

function formerTargetFinding(cell: string, claim: KnownClaim): Finding {
  return cellFinding(
    cell,
    'fail',
    'another target cluster is that of all namespaces, by --target-kubeconfig, and its Machines may have their Nodes there',
    `correct the kubeconfig; or, if no Machines of any namespace have Nodes there, ${deletionOf(claim)}`,
  );
}

function commonTargetFinding(cell: string, claim: KnownClaim): Finding {
  return cellFinding(
    cell,
    'fail',
    'its target cluster is that of all namespaces, by --target-kubeconfig; nothing is done there for this one',
    `correct the kubeconfig; or, if no other namespace has Machines there, ${deletionOf(claim)}`,
  );
}

function takenTargetFinding(cell: string, holder: string): Finding {
  return cellFinding(
    cell,
    'fail',
    `its target cluster is that of namespace ${holder}, too; nothing is done there for this one`,
    'correct the kubeconfig of one of them',
  );
}

function changedTargetFinding(cell: string, claim: KnownClaim): Finding {
  return cellFinding(
    cell,
    'fail',
    'its kubeconfig leads to another target cluster than that of its Machines; nothing is done in either',
    `correct the kubeconfig; or, if that is meant, ${deletionOf(claim)}`,
  );
}

/** That of all namespaces is made again by a replica that has the cluster. */
function deletionOf({ holder, lease }: KnownClaim): string {
  return `${holder === ALL_NAMESPACES ? 'stop all replicas and ' : ''}delete Lease ${lease} in the namespace of the Leases`;
}
