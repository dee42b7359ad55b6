import { GROUP, VERSION } from '../../../pkg/apis/machine/v1alpha1/group.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Lease } from '../../../pkg/apis/wire.ts';
import { fromHTTPDate } from '../../../pkg/base/clock/clock.ts';
import { keepAliveDuring } from '../../../pkg/base/clock/keep-alive.ts';
import { SystemClock } from '../../../pkg/base/clock/system-clock.ts';
import { IRONCORE_FLAGS, type PoolAddress } from '../../../pkg/worlds/ironcore/controllers/flags.ts';
import type { Config, ProviderAddress } from '../../../pkg/operator/config/config.ts';
import { parseDriverAddress } from '../../../pkg/driver/grpc/address.ts';
import { GrpcDriver } from '../../../pkg/driver/grpc/client.ts';
import { RuntimeClient } from '../../../pkg/worlds/ironcore/runtime/client.ts';
import { AccessReviewer } from '../../../pkg/kube/client/access-review.ts';
import { ConfigError } from '../../../pkg/kube/client/config-error.ts';
import { readSchemas } from '../../../pkg/kube/client/open-api.ts';
import { leases, machineClasses, namespaces } from '../../../pkg/kube/client/resource.ts';
import type { Resource } from '../../../pkg/apis/resource.ts';
import type { RequestRecord, Transport } from '../../../pkg/kube/client/transport.ts';
import { silentLogger } from '../../../pkg/base/log/logger.ts';
import { clockMetrics } from '../../../pkg/base/metrics/clock.ts';
import { kubeMetrics } from '../../../pkg/base/metrics/kube.ts';
import { createRegistry } from '../../../pkg/base/metrics/registry.ts';
import { type ClusterAccess, type Clusters, openClusters } from '../../../pkg/operator/clusters.ts';
import { type Schema, unknownFields } from '../../../pkg/operator/preflight/known-fields.ts';
import { type Permission, permissionsOf } from '../../../pkg/operator/preflight/permissions.ts';
import { WORLDS } from '../../../pkg/worlds/served.ts';
import { workloadOf } from '../../../pkg/operator/preflight/workload.ts';
import { refusedOf } from '../../../pkg/operator/preflight/refused.ts';
import { MACHINE_LEASE, servesOwnKinds } from '../../../pkg/kube/leader/names.ts';
import { printable } from '../../printable.ts';
import { version } from '../version.ts';
import { isRenewed } from '../manager-leases.ts';
import { WaitNotice } from '../wait-notice.ts';
import { find, read, TIMEOUT_MS, unlessAbsent, unlessRefused } from './ask.ts';
import type { PreflightOptions } from './command.ts';
import {
  clockFinding,
  clusterFinding,
  contextFindings,
  type ServerTimeSample,
  driverFinding,
  preflightExitCode,
  fieldFindings,
  foreignKindFinding,
  foreignKindsOf,
  type Finding,
  kindFindings,
  leaseFinding,
  namespaceFindings,
  otherManagerFindings,
  permissionFindings,
  runtimeFinding,
  type ServedKinds,
  skewMsOf,
} from './findings.ts';
import { lookAtCells } from './look-at-cells.ts';
import { lookAtClasses } from './look-at-classes.ts';
import { lookAtNodes } from './look-at-nodes.ts';
import { renderFindings, renderJSON } from './render.ts';

const USER_AGENT = `machinist/${version()} preflight`;

/**
 * Prints what a process with these flags would find. Resolves with the exit code: 1 when it could not start, or not do its work,
 * or when a kubeconfig cannot be used, which is then said in one line on standard error.
 */
export async function preflight(config: Config, { as, output }: PreflightOptions): Promise<number> {
  try {
    const findings = await keepAliveDuring(() => look(config, as));
    console.log(printable((output === 'json' ? renderJSON : renderFindings)(findings)));
    return preflightExitCode(findings);
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    console.error(`error: ${err.message}`);
    return 1;
  }
}

async function look(config: Config, as: string | undefined): Promise<readonly Finding[]> {
  const clock = new SystemClock();
  const registry = createRegistry();
  const answers: ServerTimeSample[] = [];
  const notice = new WaitNotice(process.stderr.isTTY ? (line) => console.error(printable(line)) : undefined);
  const onRequest = ({ date, sentMs, receivedMs }: RequestRecord): void => {
    notice.end();
    const serverMs = fromHTTPDate(date);
    const toWallMs = clock.hostWallMs() - clock.monotonicMs();
    if (serverMs !== undefined)
      answers.push({ serverMs, sentMs: sentMs + toWallMs, receivedMs: receivedMs + toWallMs });
  };
  const clusters = await openClusters(config, WORLDS, {
    userAgent: USER_AGENT,
    env: process.env,
    ...config.api,
    clock,
    log: silentLogger,
    metrics: kubeMetrics(registry),
    clockMetrics: clockMetrics(registry),
    impersonate: as,
    onRequest,
  });
  try {
    const { control, target } = clusters;
    notice.begin(`an answer from ${control.server}`);
    const ofControl = await lookAtControl(clusters, config, { as, answers, clock });
    const ofTarget =
      target === undefined || target === control
        ? []
        : await lookAt(target, () => permissionsIn(target, as, neededIn(['target'], clusters, config)));
    const ofNodes =
      target === undefined || config.cells !== undefined || !config.leases.has(MACHINE_LEASE)
        ? []
        : await lookAtNodes(control.reader, target.reader, config.clusters.namespace);
    const ofDrivers = await Promise.all(config.drivers.map((driver) => lookAtDriver(driver, clock)));
    const ofRuntimes = await Promise.all(config.of(IRONCORE_FLAGS).pools.map((pool) => lookAtRuntime(pool, clock)));
    return [...ofControl, ...ofTarget, ...ofNodes, ...ofDrivers, ...ofRuntimes];
  } finally {
    notice.end();
    for (const access of new Set([clusters.control, clusters.target])) await access?.transport.close();
  }
}

/** What a cluster says, and `more` when it answers at all. */
async function lookAt(
  { cluster, server, transport }: ClusterAccess,
  more: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const answer = await find(() => read<{ gitVersion?: string }>(transport, '/version'));
  const found = 'value' in answer ? { value: String(answer.value.gitVersion) } : answer;
  const finding = clusterFinding(cluster, server, found);
  return 'value' in found ? [finding, ...(await more())] : [finding];
}

interface Circumstances {
  readonly as: string | undefined;
  readonly answers: readonly ServerTimeSample[];
  readonly clock: SystemClock;
}

async function lookAtControl(
  clusters: Clusters,
  config: Config,
  { as, answers, clock }: Circumstances,
): Promise<readonly Finding[]> {
  const { control, target } = clusters;
  const { transport, reader } = control;
  const { namespace } = config.clusters;
  const { cells } = config;
  const providers = config.drivers.map(({ provider }) => provider);
  const limits = { timeoutMs: TIMEOUT_MS };
  return await lookAt(control, async () => {
    const [first] = answers;
    const ofNamespace = await find(() =>
      unlessRefused(unlessAbsent(reader.get(namespaces, { name: namespace }, limits))),
    );
    const served = await find(() => servedKinds(transport, machineClasses));
    const ofOthers = await Promise.all(
      foreignKindsOf(config.controllers).map(async (kind) =>
        foreignKindFinding(kind, await find(() => servedKinds(transport, kind.resource))),
      ),
    );
    const unknown = await find(async () => {
      const schemas = await readSchemas(transport, { group: GROUP, version: VERSION }, limits);
      return unknownFields((kind) => schemas.get(kind) as Schema | undefined);
    });
    const roles = target === control ? (['control', 'target'] as const) : (['control'] as const);
    const allowed = await permissionsIn(control, as, neededIn(roles, clusters, config));
    // With cells each shard has a Lease of its own.
    const names = config.leader.enabled && cells === undefined ? [...config.leases] : [];
    const ofLeases = await Promise.all(
      names.map(async (name) => {
        const found = await find(() =>
          unlessAbsent<Lease>(reader.get(leases, { namespace: config.leader.namespace, name }, limits)),
        );
        return leaseFinding(name, found, clock.now());
      }),
    );
    // That one cannot be read is said of the permissions.
    const isElsewhere = cells === undefined && config.leader.namespace !== namespace;
    const beside = await Promise.all(
      (isElsewhere ? [...config.leases] : []).map((name) =>
        find(() => reader.get(leases, { namespace, name }, limits)),
      ),
    );
    const renewed = beside
      .flatMap((one) => ('value' in one ? [one.value] : []))
      .filter((lease) => isRenewed(lease, clock.now()));
    const isOwn = servesOwnKinds(config.leases);
    const hasKinds = isOwn && 'value' in served && served.value.verbs.has(machineClasses.plural);
    return [
      ...(first === undefined ? [] : [clockFinding(skewMsOf(first))]),
      ...contextFindings(namespace, control.endpoint.namespace),
      ...namespaceFindings(namespace, ofNamespace),
      ...(isOwn ? kindFindings(served, config.leases.has(MACHINE_LEASE)) : []),
      ...ofOthers,
      ...(hasKinds ? fieldFindings(unknown) : []),
      ...allowed,
      ...ofLeases,
      ...otherManagerFindings(namespace, renewed),
      ...(hasKinds && config.leases.has(MACHINE_LEASE) && cells === undefined
        ? await lookAtClasses(reader, namespace, providers)
        : []),
      ...(cells === undefined
        ? []
        : await lookAtCells({
            reader,
            transport,
            as,
            cells,
            commonTarget: cells.hasOneTarget ? target?.reader : undefined,
            isAutoscaled: config.autoscaler !== undefined,
            leaseNamespace: config.leader.namespace,
            providers,
            permissions: neededInCells(config),
            userAgent: USER_AGENT,
            clock,
          })),
    ];
  });
}

function neededIn(roles: readonly string[], clusters: Clusters, config: Config): readonly Permission[] {
  // A driver that cannot be reached from here need not be named, and runs there all the same.
  const callsDrivers = config.leases.has(MACHINE_LEASE);
  const all = permissionsOf(workloadOf(config, { hasTarget: clusters.target !== undefined, callsDrivers }), WORLDS);
  return all.filter(({ cluster }) => roles.includes(cluster));
}

/** The same in the target cluster of each cell. */
function neededInCells(config: Config): readonly Permission[] {
  const all = permissionsOf(workloadOf(config, { hasTarget: true, callsDrivers: config.drivers.length > 0 }), WORLDS);
  return all.filter(({ cluster }) => cluster === 'target');
}

async function permissionsIn(
  { cluster, transport }: ClusterAccess,
  as: string | undefined,
  permissions: readonly Permission[],
): Promise<readonly Finding[]> {
  const reviewer = new AccessReviewer(transport);
  return permissionFindings(cluster, as, await find(() => refusedOf(reviewer, permissions, { timeoutMs: TIMEOUT_MS })));
}

/** What is served of the group of a kind, in the newest version in which the kind is understood and served. */
async function servedKinds(transport: Transport, kind: Resource<KubeObject>): Promise<ServedKinds> {
  const group = await unlessAbsent(
    read<{ versions?: readonly { readonly version: string }[] }>(transport, `/apis/${kind.group}`),
  );
  const list = await unlessAbsent(
    read<{ resources?: readonly { readonly name: string; readonly verbs: readonly string[] }[] }>(
      transport,
      `/apis/${kind.group}/${kind.version}`,
    ),
  );
  const verbs = new Map((list?.resources ?? []).map((one) => [one.name, one.verbs]));
  if (kind.older !== undefined && !verbs.has(kind.plural)) return await servedKinds(transport, kind.older);
  return { verbs, versions: (group?.versions ?? []).map((one) => one.version), version: kind.version };
}

async function lookAtDriver({ provider, address }: ProviderAddress, clock: SystemClock): Promise<Finding> {
  const found = await find(async () => {
    const driver = new GrpcDriver({ provider, address: parseDriverAddress(address), clock, log: silentLogger });
    try {
      return await driver.capabilities(AbortSignal.timeout(2 * TIMEOUT_MS));
    } finally {
      await driver.close();
    }
  });
  return driverFinding(provider, address, found);
}

async function lookAtRuntime(pool: PoolAddress, clock: SystemClock): Promise<Finding> {
  const found = await find(async () => {
    const client = new RuntimeClient({ address: parseDriverAddress(pool.address), clock, log: silentLogger });
    const call = { signal: AbortSignal.timeout(2 * TIMEOUT_MS), timeoutMs: TIMEOUT_MS };
    try {
      return { version: await client.version(call), classes: await client.classes(call) };
    } finally {
      client.close();
    }
  });
  return runtimeFinding(pool, found);
}
