import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

import { ServerCredentials } from '@grpc/grpc-js';
import { createChannel, createClient } from 'nice-grpc';

import {
  MACHINE_NAME_LABEL,
  NODE_GROUP_MAX_ANNOTATION,
  NODE_GROUP_MIN_ANNOTATION,
  NODE_LABEL,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject, ObjectMeta } from '../../pkg/apis/meta.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { answering } from '../../pkg/autoscaler/answer.ts';
import { CloudProvider } from '../../pkg/autoscaler/cloud-provider.ts';
import {
  CloudProviderDefinition,
  ExternalGrpcNode,
  NodeGroupAutoscalingOptions,
} from '../../pkg/autoscaler/gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import { GrpcServer } from '../../pkg/autoscaler/grpc-server.ts';
import { Places } from '../../pkg/autoscaler/places.ts';
import { NodeGroups } from '../../pkg/autoscaler/groups.ts';
import { LearnedShapes } from '../../pkg/autoscaler/learned.ts';
import { Membership } from '../../pkg/autoscaler/membership.ts';
import { autoscalerMetrics } from '../../pkg/autoscaler/metrics.ts';
import { Store, type IndexFunctions } from '../../pkg/kube/cache/store.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { nodeAccess } from '../../pkg/controllers/machine-facts/node-access.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../../pkg/operator/indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../pkg/operator/indexes/owner-index.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { createRegistry } from '../../pkg/base/metrics/registry.ts';
import type { Target } from '../../pkg/kube/targets/targets.ts';
import { wireMessage } from '../../test/fakes/wire-message.ts';
import { number, readOptions } from '../options.ts';

/**
 * How long the calls of one loop of a cluster-autoscaler take that grow with the Nodes: for each five times its options and once its
 * group, one call after the other as the autoscaler sends them. The client is a thread of its own.
 */
if (isMainThread) await measure();
else await call(workerData as Load);

interface Load {
  readonly address: string;
  readonly nodes: number;
  readonly loops: number;
}

async function measure(): Promise<void> {
  const { nodes, loops } = readOptions('Measures the calls of a cluster-autoscaler about many Nodes.', {
    nodes: number('Nodes', 1_000),
    loops: number('loops', 5),
  });
  const directory = mkdtempSync(path.join(tmpdir(), 'machinist-bench-'));
  const clock = new SystemClock();
  const server = await GrpcServer.listen({
    listen: { kind: 'unix', path: path.join(directory, 's') },
    credentials: ServerCredentials.createInsecure(),
    answer: answering({
      rpcs: providerOf(nodes),
      clientNames: undefined,
      unavailable: () => undefined,
      drop: () => undefined,
      roleFile: 'deploy/rbac/control.yaml',
      metrics: autoscalerMetrics(createRegistry(), () => []),
      clock,
      log: silentLogger,
    }),
    clock,
  });
  const load: Load = { address: server.address, nodes, loops };
  const worker = new Worker(new URL(import.meta.url), { workerData: load });
  let cpu = process.threadCpuUsage();
  worker.on('message', (tookMs: number) => {
    const { user, system } = process.threadCpuUsage(cpu);
    cpu = process.threadCpuUsage();
    console.log(
      `${6 * nodes} calls: ${Math.round(tookMs)} ms; CPU of the server ${Math.round((user + system) / 1_000)} ms`,
    );
  });
  await new Promise<void>((resolve, reject) => worker.once('error', reject).once('exit', () => resolve()));
  await server.close();
  rmSync(directory, { recursive: true });
}

async function call({ address, nodes, loops }: Load): Promise<void> {
  const channel = createChannel(address);
  const client = createClient(CloudProviderDefinition, channel);
  const minute = { seconds: 60n, nanos: 0 };
  const defaults = wireMessage(NodeGroupAutoscalingOptions, {
    scaleDownUnneeded: minute,
    scaleDownUnready: minute,
    maxNodeProvision: minute,
  });
  for (let loop = 0; loop < loops; loop++) {
    const startMs = performance.now();
    for (let i = 0; i < nodes; i++) {
      const node = wireMessage(ExternalGrpcNode, { name: `m-${i}`, providerId: `cloud:///${i}` });
      const { nodeGroup } = await client.nodeGroupForNode({ node });
      for (let n = 0; n < 5; n++) await client.nodeGroupGetOptions({ id: nodeGroup?.id ?? '', defaults });
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- the port of a thread has none
    parentPort?.postMessage(performance.now() - startMs);
  }
  channel.close();
}

function providerOf(count: number): CloudProvider {
  const deployment: MachineDeployment = {
    metadata: {
      ...metaOf('pool'),
      annotations: {
        [NODE_GROUP_MIN_ANNOTATION]: '0',
        [NODE_GROUP_MAX_ANNOTATION]: String(count),
        'autoscaler.gardener.cloud/scale-down-unneeded-time': '5m',
      },
    },
    spec: { replicas: count, template: {} },
  };
  const set: MachineSet = { metadata: metaOf('set', deployment), spec: {} };
  const each = Array.from({ length: count }, (_, i) => i);
  const machines = storeOf<Machine>(
    each.map((i) => ({
      metadata: { ...metaOf(`m-${i}`, set), labels: { [NODE_LABEL]: `m-${i}` } },
      spec: { providerID: `cloud:///${i}` },
    })),
    { ...MACHINE_INDEXES, [CONTROLLER_INDEX]: controllerIndex },
  );
  const nodes = storeOf<Node>(
    each.map((i) => ({
      metadata: { ...metaOf(`m-${i}`), namespace: '', labels: { [MACHINE_NAME_LABEL]: `m-${i}` } },
      spec: { providerID: `cloud:///${i}` },
    })),
    NODE_INDEXES,
  );
  const machineDeployments = storeOf([deployment]);
  const refuse = (): Promise<never> => Promise.reject(new Error('nothing is changed here'));
  return new CloudProvider({
    groups: new NodeGroups({ deployments: machineDeployments, namespace: 'default', listed: new Map() }),
    membership: new Membership({
      machines,
      machineSets: storeOf([set], { [CONTROLLER_INDEX]: controllerIndex }),
      machineDeployments,
      nodes,
      nodesOf: (machine) => nodeAccess({ nodes } as unknown as Target, machines).ofMachine(machine),
    }),
    machineDeployments,
    machineClasses: { get: () => undefined, hasSynced: true },
    learned: new LearnedShapes(),
    announced: () => Promise.resolve(undefined),
    mutations: { increase: refuse, delete: refuse, decrease: refuse },
    places: new Places('x'),
    owed: () => 0,
    catchUp: () => Promise.resolve(),
    gpu: { gpuLabel: '', gpuTypes: [] },
    clock: new SystemClock(),
    trust: { blindMs: () => 0, graceLeftMs: () => 0 },
    clusters: [],
  });
}

function storeOf<T extends KubeObject>(objects: readonly T[], indexes: IndexFunctions<T> = {}): Store<T> {
  const store = new Store<T>(indexes);
  for (const object of objects) store.put(object);
  return store;
}

function metaOf(name: string, owner?: KubeObject): ObjectMeta {
  const reference = owner && {
    apiVersion: '',
    kind: '',
    name: owner.metadata.name,
    uid: owner.metadata.uid,
    controller: true,
  };
  return {
    name,
    namespace: 'default',
    uid: `uid-${name}`,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...(reference && { ownerReferences: [reference] }),
  };
}
