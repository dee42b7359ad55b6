import PQueue from 'p-queue';

import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Lease } from '../../../pkg/apis/wire.ts';
import { hadNode } from '../../../pkg/apis/machine/v1alpha1/defaults.ts';
import type { Clock } from '../../../pkg/base/clock/clock.ts';
import {
  CELL_MOVES_TO_ANNOTATION,
  CELL_REPLICA_LABEL,
  CELL_TARGET_LABEL,
  CELL_WORKLOAD_LABEL,
} from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { ChangeHandler } from '../../../pkg/kube/cache/lister.ts';
import { AccessReviewer } from '../../../pkg/kube/client/access-review.ts';
import type { Reader } from '../../../pkg/kube/client/client.ts';
import { HttpReader } from '../../../pkg/kube/client/http-reader.ts';
import { leases, machines, namespaces, nodes } from '../../../pkg/kube/client/resource.ts';
import { Transport } from '../../../pkg/kube/client/transport.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../../../pkg/kube/leader/names.ts';
import { holderOf } from '../../../pkg/kube/leader/lease.ts';
import { ALL_NAMESPACES, NO_TARGET } from '../../../pkg/operator/cells/target-claims.ts';
import { CellClients, describeClash } from '../../../pkg/operator/cells/cell-clients.ts';
import { cellEndpoint } from '../../../pkg/operator/cells/cell-kubeconfig.ts';
import { type CellsConfig, CellSettingsError } from '../../../pkg/operator/config/cells.ts';
import { cellPermissions, type Permission } from '../../../pkg/operator/preflight/permissions.ts';
import { refusedOf } from '../../../pkg/operator/preflight/refused.ts';
import { WORLDS } from '../../../pkg/worlds/served.ts';
import { isRenewed } from '../manager-leases.ts';
import { find, read, TIMEOUT_MS } from './ask.ts';
import {
  cellFinding,
  cellPermissionFindings,
  cellsFinding,
  commonTargetFindings,
  clientNameFinding,
  type KnownClaim,
  noTargetFinding,
  namedCellsFinding,
  otherManagerFinding,
  ofCell,
  replicaFindings,
  targetFindings,
  unreachableTargetFinding,
  unidentifiedNodesFinding,
  unreadCellFinding,
} from './cell-findings.ts';
import { type Finding, permissionFindings } from './findings.ts';
import { lookAtClasses } from './look-at-classes.ts';

/** What is needed to look at cells. */
export interface CellsCircumstances {
  /** Of the control cluster. */
  readonly reader: Reader;
  readonly transport: Transport;
  /** As whom it is asked there; undefined: the user of the kubeconfig. */
  readonly as: string | undefined;
  readonly cells: CellsConfig;
  /** Of the target cluster of all cells, if they have one. */
  readonly commonTarget: Pick<Reader, 'get' | 'list'> | undefined;
  /** Whether autoscalers are served. */
  readonly isAutoscaled: boolean;
  readonly leaseNamespace: string;
  readonly providers: readonly string[];
  /** Those that a process needs in each target cluster. */
  readonly permissions: readonly Permission[];
  readonly userAgent: string;
  readonly clock: Clock;
}

/** So many Nodes are looked at. */
const MOST_NODES = 500;
/** How many cells are looked at at once. */
const AT_ONCE = 10;

/** A cell to look at, and what is not quite right with it already. */
interface FoundCell {
  readonly namespace: KubeObject;
  readonly warnings: readonly Finding[];
}

/** A cell that was looked at. */
interface SeenCell {
  readonly cell: string;
  /** UID of Namespace kube-system of its target cluster, as far as it is known. */
  readonly uid?: string;
  readonly findings: readonly Finding[];
}

/** What a process would find in each namespace that is selected, and in its target cluster. */
export async function lookAtCells(circumstances: CellsCircumstances): Promise<readonly Finding[]> {
  const { reader, cells, leaseNamespace, clock } = circumstances;
  const limits = { timeoutMs: TIMEOUT_MS };
  const ofLeases = async (labelSelector: string): Promise<readonly Lease[] | undefined> => {
    const how = { namespace: leaseNamespace, labelSelector, ...limits };
    const found = await find(async () => await reader.list(leases, how));
    // That they cannot be read is said of the permissions.
    return 'value' in found ? found.value.items : undefined;
  };
  const replicas = await ofLeases(CELL_REPLICA_LABEL);
  const claims = [...((await ofLeases(CELL_TARGET_LABEL)) ?? []), ...((await ofLeases(CELL_WORKLOAD_LABEL)) ?? [])];
  const live = replicas?.filter((lease) => isRenewed(lease, clock.now()));
  const queue = new PQueue({ concurrency: AT_ONCE });
  const { ofAll, found } = await foundCells(circumstances);
  const seen = await Promise.all(
    found.map(async (one) => ('findings' in one ? one : await queue.add(() => lookAtCell(one, circumstances)))),
  );
  const known = seen.flatMap(({ cell, uid }) => (uid === undefined ? [] : [{ cell, uid }]));
  const names = new Set(cells.names ?? seen.map(({ cell }) => cell));
  const ofTargets = await knownClaims(reader, claims, names, queue);
  const foreign = targetFindings(known, ofTargets, await ownersAmong(reader, known, ofTargets, queue));
  const ofCommon = await ofCommonTarget(circumstances, ofTargets);
  const ofNodes = await ofCommonNodes(circumstances);
  const selected = found.flatMap((one) => ('namespace' in one ? [one.namespace] : []));
  const ofNone = await ofCellsWithoutTarget(circumstances, selected, queue);
  const ofClients = clientFindings(selected, circumstances);
  return [
    ...(live === undefined ? [] : replicaFindings(live, cells.shards)),
    ofAll,
    ...ofCommon,
    ...ofNodes,
    ...seen.flatMap(({ cell, findings }) => {
      if (ofCommon.length > 0) return findings.filter(({ status }) => status !== 'ok');
      const others = [foreign.get(cell) ?? [], ofNone.get(cell) ?? [], ofClients.get(cell) ?? []].flat();
      // One line for a cell that is well.
      return others.length === 0 ? findings : [...findings.filter(({ status }) => status !== 'ok'), ...others];
    }),
  ];
}

/** That its UID cannot be read is said of the permissions. */
async function ofCommonTarget(
  { commonTarget }: CellsCircumstances,
  claims: readonly KnownClaim[],
): Promise<readonly Finding[]> {
  if (commonTarget === undefined) return [];
  const found = await find(() => commonTarget.get(namespaces, { name: 'kube-system' }, { timeoutMs: TIMEOUT_MS }));
  return 'value' in found ? commonTargetFindings(found.value.metadata.uid, claims) : [];
}

/** A sample of them is enough. That they cannot be read is said of the permissions. */
async function ofCommonNodes({ commonTarget }: CellsCircumstances): Promise<readonly Finding[]> {
  if (commonTarget === undefined) return [];
  const found = await find(() => commonTarget.list(nodes, { limit: MOST_NODES, timeoutMs: TIMEOUT_MS }));
  const finding = 'value' in found ? unidentifiedNodesFinding(found.value.items) : undefined;
  return finding === undefined ? [] : [finding];
}

/** What is said of cells that would have no target cluster although their Machines have Nodes. */
async function ofCellsWithoutTarget(
  { reader, cells, commonTarget }: CellsCircumstances,
  selected: readonly KubeObject[],
  queue: PQueue,
): Promise<ReadonlyMap<string, Finding>> {
  if (cells.kubeconfigSecret !== '' || commonTarget !== undefined) return new Map();
  const found = await Promise.all(
    selected.map(async ({ metadata: { name: cell, annotations } }) => {
      if (annotations?.[CELL_MOVES_TO_ANNOTATION] === NO_TARGET) return [];
      const own = await queue.add(() => find(() => reader.list(machines, { namespace: cell, timeoutMs: TIMEOUT_MS })));
      return 'value' in own && own.value.items.some(hadNode) ? [[cell, noTargetFinding(cell)] as const] : [];
    }),
  );
  return new Map(found.flat());
}

/** Which cells have Machines, where all namespaces had one target cluster. */
async function ownersAmong(
  reader: Reader,
  cells: readonly { readonly cell: string }[],
  claims: readonly KnownClaim[],
  queue: PQueue,
): Promise<ReadonlySet<string>> {
  if (!claims.some(({ holder }) => holder === ALL_NAMESPACES)) return new Set();
  const found = await Promise.all(
    cells.map(async ({ cell }) => ((await queue.add(() => findMachines(reader, cell))) ? [cell] : [])),
  );
  return new Set(found.flat());
}

/** Whether a namespace has Machines, or any has; those that cannot be read are said elsewhere. */
async function findMachines(reader: Reader, holder: string): Promise<boolean> {
  const where = holder === ALL_NAMESPACES ? {} : { namespace: holder };
  const how = { ...where, limit: 1, metadataOnly: true, timeoutMs: TIMEOUT_MS } as const;
  const found = await find(async () => await reader.list(machines, how));
  return 'value' in found && found.value.items.length > 0;
}

/** What the claims of target clusters mean; Machines that cannot be read are said elsewhere. */
async function knownClaims(
  reader: Reader,
  claims: readonly Lease[],
  selected: ReadonlySet<string>,
  queue: PQueue,
): Promise<readonly KnownClaim[]> {
  return await Promise.all(
    claims.map(async (lease) => {
      const holder = holderOf(lease);
      const one = { lease: lease.metadata.name, holder, isSelected: selected.has(holder) };
      return { ...one, hasMachines: await queue.add(() => findMachines(reader, holder)) };
    }),
  );
}

/** What is wrong with the names of autoscalers, by cell. */
function clientFindings(
  selected: readonly KubeObject[],
  { cells, isAutoscaled }: Pick<CellsCircumstances, 'cells' | 'isAutoscaled'>,
): ReadonlyMap<string, Finding> {
  const onChange = (hear: ChangeHandler<KubeObject>): void => selected.forEach((one) => hear(undefined, one));
  const clients = new CellClients({ namespaces: { onChange }, namesIn: cells.clientNamesIn });
  return new Map(
    selected.flatMap(({ metadata: { name: cell } }) => {
      const clash = clients.clashOf(cell);
      const finding = clientNameFinding(cell, {
        isNamed: clients.namesOf(cell).length > 0,
        clash: clash && describeClash(clash),
        isAutoscaled,
      });
      return finding === undefined ? [] : [[cell, finding] as const];
    }),
  );
}

/** The namespaces, and what is said of all together. One that cannot be looked at says why. */
async function foundCells(
  circumstances: CellsCircumstances,
): Promise<{ readonly ofAll: Finding; readonly found: readonly (FoundCell | SeenCell)[] }> {
  const { reader, cells } = circumstances;
  const { selector, names } = cells;
  if (names === undefined) {
    const how = { labelSelector: selector, metadataOnly: true, timeoutMs: TIMEOUT_MS } as const;
    const selected = await find(async () => (await reader.list(namespaces, how)).items);
    return {
      ofAll: cellsFinding(selector, selected),
      found: 'value' in selected ? selected.value.map((namespace) => ({ namespace, warnings: [] })) : [],
    };
  }
  const queue = new PQueue({ concurrency: AT_ONCE });
  const found = await Promise.all(names.map((name) => queue.add(() => lookAtNamed(name, circumstances))));
  return { ofAll: namedCellsFinding(names), found };
}

async function lookAtNamed(cell: string, circumstances: CellsCircumstances): Promise<FoundCell | SeenCell> {
  const { reader, transport, as, cells } = circumstances;
  const limits = { timeoutMs: TIMEOUT_MS };
  const namespace = await find(() => reader.get(namespaces, { name: cell }, { metadataOnly: true, ...limits }));
  if ('error' in namespace) return { cell, findings: [unreadCellFinding(cell, namespace.error)] };
  const needed = cellPermissions(cells.of(cell, {}), WORLDS);
  const missing = await find(() => refusedOf(new AccessReviewer(transport), needed, limits));
  const findings = cellPermissionFindings(cell, as, missing);
  return findings.some(({ status }) => status === 'fail')
    ? { cell, findings }
    : { namespace: namespace.value, warnings: findings };
}

async function lookAtCell({ namespace, warnings }: FoundCell, circumstances: CellsCircumstances): Promise<SeenCell> {
  const { reader, cells, providers } = circumstances;
  const { name: cell, annotations = {} } = namespace.metadata;
  const bad = [...warnings];
  try {
    cells.of(cell, annotations);
  } catch (err) {
    if (!(err instanceof CellSettingsError)) throw err;
    bad.push(
      cellFinding(cell, 'fail', err.message, 'correct the annotation of the namespace; the cell does not start before'),
    );
  }
  bad.push(...(await ofOtherManager(cell, circumstances)));
  const ofClasses = await lookAtClasses(reader, cell, providers);
  bad.push(...ofClasses.filter(({ status }) => status !== 'ok').map((finding) => ofCell(cell, finding)));
  const target = await lookAtTarget(cell, circumstances);
  bad.push(...target.bad);
  const { uid, server = cells.hasOneTarget ? 'in the target cluster of all cells' : 'no target cluster' } = target;
  const findings = bad.length === 0 ? [cellFinding(cell, 'ok', server)] : bad;
  return uid === undefined ? { cell, findings } : { cell, uid, findings };
}

/** That the Leases cannot be read is said of the permissions. */
async function ofOtherManager(cell: string, circumstances: CellsCircumstances): Promise<readonly Finding[]> {
  const { reader, cells, clock } = circumstances;
  const names = [MANAGER_LEASE, MACHINE_LEASE].filter((name) => cells.of(cell, {}).leases.has(name));
  const found = await Promise.all(
    names.map((name) => find(() => reader.get(leases, { namespace: cell, name }, { timeoutMs: TIMEOUT_MS }))),
  );
  const known = found.flatMap((one) => ('value' in one ? [one.value] : []));
  const finding = otherManagerFinding(
    cell,
    known.filter((lease) => isRenewed(lease, clock.now())),
  );
  return finding === undefined ? [] : [finding];
}

/** What the target cluster of a cell says. */
interface SeenTarget {
  readonly uid?: string;
  /** With its version. */
  readonly server?: string;
  readonly bad: readonly Finding[];
}

async function lookAtTarget(cell: string, circumstances: CellsCircumstances): Promise<SeenTarget> {
  const { reader, cells, permissions, userAgent, clock } = circumstances;
  if (cells.kubeconfigSecret === '') return { bad: [] };
  const endpoint = await find(
    async () =>
      await cellEndpoint({
        reader,
        secrets: { get: () => undefined },
        namespace: cell,
        names: cells,
        clock,
        moved: () => undefined,
      }),
  );
  if ('error' in endpoint) {
    return { bad: [cellFinding(cell, 'fail', endpoint.error, 'correct the Secret; the cell does not start before')] };
  }
  const { origin } = new URL(endpoint.value.url);
  const transport = new Transport({ endpoint: endpoint.value, clock, userAgent });
  try {
    const version = await find(() => read<{ gitVersion?: string }>(transport, '/version'));
    if ('error' in version) return { bad: [unreachableTargetFinding(cell, origin, version.error)] };
    const reviewer = new AccessReviewer(transport);
    const missing = await find(() => refusedOf(reviewer, permissions, { timeoutMs: TIMEOUT_MS }));
    const system = { name: 'kube-system' };
    const identity = await find(() => new HttpReader(transport).get(namespaces, system, { timeoutMs: TIMEOUT_MS }));
    return {
      ...('value' in identity && { uid: identity.value.metadata.uid }),
      server: `${origin}, Kubernetes ${String(version.value.gitVersion)}`,
      bad: permissionFindings('target', undefined, missing)
        .filter(({ status }) => status !== 'ok')
        .map((finding) => ofCell(cell, finding)),
    };
  } finally {
    await transport.close();
  }
}
