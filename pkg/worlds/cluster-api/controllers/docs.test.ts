import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { parseManifests } from '../../../../hack/control-plane/apply.ts';
import { node } from '../../../../test/builders.ts';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import type { Patch } from '../../../kube/client/patch.ts';
import { apiVersionOf } from '../../../kube/client/resource.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../api/resources.ts';
import { ClusterAPIClusterController, type ClusterControllerDeps } from './cluster-controller.ts';
import { CLUSTER_EVENTS } from './cluster-events.ts';
import { clusterAPIMachineConditions, plain } from './conditions.ts';
import { olderConditions } from './older-conditions.ts';
import { CLUSTER_API_MACHINE_INDEXES } from './kinds.ts';

const DOCS = join(import.meta.dirname, '../../../../docs');
const PAGE = readFileSync(join(DOCS, 'operations/cluster-api.md'), 'utf8');
const EVENTS = readFileSync(join(DOCS, 'reference/events.md'), 'utf8');

const REFERENCE = { apiGroup: 'g', kind: 'Sim', name: 'i' };

/** Cells of a table that begins so, without its header. */
function rowsOf(page: string, beginning: string): readonly (readonly string[])[] {
  const table = page.split('\n\n').find((part) => part.startsWith(beginning)) ?? '';
  const lines = table.trimEnd().split('\n').slice(2);
  return lines.map((line) => line.split('|').map((cell) => cell.trim()));
}

test('the example of the page is a Cluster and a Machine of it', () => {
  const [yaml = ''] = [...PAGE.matchAll(/```yaml\n([^]*?)```/g)].map(([, text = '']) => text);
  const [cluster, machine] = parseManifests(yaml);

  expect([cluster, machine].map((one) => `${one?.apiVersion} ${one?.kind}`)).toEqual(
    [clusterAPIClusters, clusterAPIMachines].map((resource) => `${apiVersionOf(resource)} ${resource.kind}`),
  );
  expect((machine as unknown as ClusterAPIMachine).spec?.clusterName).toBe(cluster?.metadata.name);
});

test('the page has each condition that is written, and no other', () => {
  const machine = { metadata: { ...node().metadata }, spec: { bootstrap: { configRef: REFERENCE } } };
  const absent = { kind: 'absent' } as const;
  const facts = {
    machine,
    infrastructure: absent,
    bootstrap: absent,
    node: absent,
    dataSecret: undefined,
    upToDate: plain('UpToDate', 'True', 'UpToDate'),
    deleting: undefined,
    problems: [],
  };
  const conditions = clusterAPIMachineConditions(facts, 0);
  const cells = rowsOf(PAGE, '| condition  ');
  const [, , older = ''] = cells.at(-1) ?? [];

  const named = cells.slice(0, -1).flatMap(([, types = '']) => types.split(', '));
  expect(new Set(named)).toEqual(new Set(conditions.map(({ type }) => type)));
  expect(new Set(older.split(', ').slice(0, -1))).toEqual(
    new Set(olderConditions(facts, [], []).map(({ type }) => type)),
  );
});

test('the pages have each Event about Clusters, with its types, and each condition, and no other', async () => {
  const section = EVENTS.split('\n## ').find((part) => part.startsWith('Clusters of Cluster API')) ?? '';
  const told = rowsOf(section, '| reason ').map(([, reason, types]) => [reason, types]);
  const named = rowsOf(PAGE, '| condition of a Cluster').map(([, type]) => type);
  const cluster = heldCluster();
  const written: ClusterAPICluster[] = [];
  const deps = {
    clock: new FakeClock(),
    clusters: new MemoryInformer([cluster]),
    machines: new MemoryInformer<ClusterAPIMachine>([], CLUSTER_API_MACHINE_INDEXES),
    externals: { use: () => undefined },
    nodeClusters: { drop: () => undefined, isApart: () => false },
    isServed: () => true,
    recorder: { event: () => undefined },
    writer: {
      patch: (_intent: string, _resource: unknown, _ref: unknown, { body }: Patch) =>
        Promise.resolve(written.push(body as ClusterAPICluster)),
    },
  } as unknown as ClusterControllerDeps;
  await new ClusterAPIClusterController(deps).reconcile('ns/c', new AbortController().signal);

  expect(told).toEqual(Object.entries(CLUSTER_EVENTS).map(([reason, types]) => [reason, types.join(', ')]));
  expect(new Set(named)).toEqual(new Set(written[0]?.status?.conditions?.map(({ type }) => type)));
});

const heldCluster = (): ClusterAPICluster => ({
  metadata: {
    name: 'c',
    namespace: 'ns',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '',
    finalizers: ['cluster.cluster.x-k8s.io'],
  },
  spec: { topology: {} },
});
