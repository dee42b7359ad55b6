import { expect, test } from '@jest/globals';

import { CELL_REPLICA_LABEL } from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Lease, Node } from '../../../pkg/apis/wire.ts';
import { targetLeaseName } from '../../../pkg/operator/cells/lease-names.ts';
import { ALL_NAMESPACES } from '../../../pkg/operator/cells/target-claims.ts';
import {
  cellsFinding,
  clientNameFinding,
  commonTargetFindings,
  type KnownClaim,
  noTargetFinding,
  otherManagerFinding,
  replicaFindings,
  targetFindings,
  unidentifiedNodesFinding,
} from './cell-findings.ts';

function replica(holderIdentity: string, shards: number): Lease {
  return {
    metadata: { labels: { [CELL_REPLICA_LABEL]: String(shards) } },
    spec: { holderIdentity },
  } as unknown as Lease;
}

test.each([
  { live: [], want: ['ok no replica is running'] },
  { live: [replica('a', 16)], want: ['ok 1 replica runs with --cell-shards=16'] },
  {
    live: [replica('a', 16), replica('b', 4)],
    want: ['fail replica b has --cell-shards=4, not 16: a process with these flags takes no shard while it runs'],
  },
])('replicas: $want', ({ live, want }) => {
  expect(replicaFindings(live, 16).map(({ status, detail }) => `${status} ${detail}`)).toEqual(want);
});

test('a cell that has a manager of its own is one that does not start', () => {
  const lease = { metadata: { name: 'machine-controller' }, spec: { holderIdentity: 'own' } } as unknown as Lease;

  expect(otherManagerFinding('a', [])).toBeUndefined();
  expect(otherManagerFinding('a', [lease])).toMatchObject({
    status: 'fail',
    detail: 'a: another manager is running in the namespace: Lease machine-controller is held by own, and renewed',
  });
});

/** A claim of target cluster `uid`. */
function claim(uid: string, holder: string, how: Partial<KnownClaim> = {}): KnownClaim {
  return { lease: targetLeaseName(uid), holder, isSelected: false, hasMachines: false, ...how };
}

test.each([
  { title: 'the first, without a Lease', claims: [], others: ['b', 'c'] },
  { title: 'the one that holds the Lease', claims: [claim('u', 'c', { isSelected: true })], others: ['a', 'b'] },
  {
    title: 'the first, beside a Lease of a namespace that does not need it',
    claims: [claim('u', 'x')],
    others: ['b', 'c'],
  },
  {
    title: 'a namespace that is not selected but has Machines',
    claims: [claim('u', 'x', { hasMachines: true })],
    others: ['a', 'b', 'c'],
  },
])('of cells with one target cluster, $title has it', ({ claims, others }) => {
  const cells = ['c', 'a', 'b'].map((cell) => ({ cell, uid: 'u' }));

  const found = targetFindings([...cells, { cell: 'alone', uid: 'v' }], claims);

  expect([...found.keys()].toSorted()).toEqual(others);
});

test.each([
  {
    title: 'with Machines',
    hasMachines: true,
    want: [
      'correct the kubeconfig; or, if that is meant, delete Lease machinist-target-v in the namespace of the Leases',
    ],
  },
  { title: 'without Machines', hasMachines: false, want: [] },
])('a cell $title whose kubeconfig leads to another target cluster than before', ({ hasMachines, want }) => {
  const claims = [claim('v', 'a', { isSelected: true, hasMachines })];

  const found = targetFindings([{ cell: 'a', uid: 'u' }], claims);

  expect([...found.values()].map(({ remedy }) => remedy)).toEqual(want);
});

test('a cell does not get what was the target cluster of all of them, while any namespace has Machines', () => {
  const of = (hasMachines: boolean) =>
    targetFindings([{ cell: 'a', uid: 'u' }], [claim('u', ALL_NAMESPACES, { hasMachines })]);

  expect(of(true).get('a')).toMatchObject({
    status: 'fail',
    remedy: expect.stringContaining('stop all replicas and delete Lease machinist-target-u'),
  });
  expect(of(false).size).toBe(0);
});

test('a cell with Machines and without a claim gets no other target cluster than that which all of them had', () => {
  const claims = [claim('v', ALL_NAMESPACES, { hasMachines: true })];
  const of = (...owners: readonly string[]) => targetFindings([{ cell: 'a', uid: 'u' }], claims, new Set(owners));

  expect(of('a').get('a')).toMatchObject({
    detail: expect.stringContaining('another target cluster is that of all namespaces'),
    remedy: expect.stringContaining('delete Lease machinist-target-v'),
  });
  expect(of('b').size).toBe(0);
  // That of its own, and that which it leads to itself.
  const own = claim('u', 'a', { isSelected: true, hasMachines: true });
  expect(targetFindings([{ cell: 'a', uid: 'u' }], [...claims, own], new Set(['a'])).size).toBe(0);
  const same = [claim('u', ALL_NAMESPACES, { hasMachines: true })];
  expect(targetFindings([{ cell: 'a', uid: 'u' }], same, new Set(['a'])).get('a')?.detail).toContain(
    'its target cluster is',
  );
  // Nobody has Machines there any more, or it is another namespace's.
  const others = [claim('v', ALL_NAMESPACES), claim('w', 'b', { hasMachines: true, isSelected: true })];
  expect(targetFindings([{ cell: 'a', uid: 'u' }], others, new Set(['a'])).size).toBe(0);
});

test.each([
  { what: 'nothing, at first', claims: [], want: [] },
  { what: 'nothing, with its own Lease', claims: [claim('u', ALL_NAMESPACES, { hasMachines: true })], want: [] },
  {
    what: 'that of another cluster, with Machines',
    claims: [claim('v', ALL_NAMESPACES, { hasMachines: true })],
    want: ['--target-kubeconfig leads to another target cluster than that of the Machines; nothing is done in either'],
  },
  { what: 'nothing, when that has none', claims: [claim('v', ALL_NAMESPACES)], want: [] },
  {
    what: 'that of a namespace with Machines there',
    claims: [claim('u', 'a', { hasMachines: true })],
    want: [
      'the cluster of --target-kubeconfig is the target or workload cluster of namespace a; nothing is done there',
    ],
  },
  {
    what: 'that of a namespace with Machines elsewhere',
    claims: [claim('v', 'a', { hasMachines: true }), claim('w', 'b', { isSelected: true })],
    want: ['a: its Machines have Nodes in a target cluster of its own; nothing is done for them'],
  },
])('against one target cluster of all cells stands $what', ({ claims, want }) => {
  const found = commonTargetFindings('u', claims);

  expect(found.map(({ detail }) => detail)).toEqual(want);
  for (const { remedy } of found)
    expect(remedy).toMatch(/delete Lease machinist-target-[uv] in the namespace of the Leases($|[,;] .*to u$)/);
});

test('a cell whose machines have Nodes and that would have no target cluster', () => {
  expect(noTargetFinding('a').remedy).toBe(
    'name the target cluster; or, if that is meant, set annotation machine.sapcloud.io/cell-moves-to of the namespace to none',
  );
});

test.each([
  { selected: { value: [] }, want: 'warn --cells=s selects no namespace' },
  { selected: { value: [{}] }, want: 'ok --cells=s selects 1 namespace' },
  { selected: { error: 'no' }, want: 'fail namespaces cannot be listed: no' },
])('selection: $want', ({ selected, want }) => {
  const { status, detail } = cellsFinding('s', selected);

  expect(`${status} ${detail}`).toBe(want);
});

test.each([
  { clients: { isNamed: false, clash: undefined, isAutoscaled: true }, want: undefined },
  { clients: { isNamed: true, clash: undefined, isAutoscaled: true }, want: undefined },
  { clients: { isNamed: true, clash: 'is shared', isAutoscaled: true }, want: 'fail a: is shared' },
  {
    clients: { isNamed: true, clash: undefined, isAutoscaled: false },
    want: 'warn a: annotation cell.machine.sapcloud.io/autoscaler-client-name has no effect without --autoscaler-grpc-address',
  },
])('names of autoscalers: $want', ({ clients, want }) => {
  const finding = clientNameFinding('a', clients);

  expect(finding && `${finding.status} ${finding.detail}`).toBe(want);
});

test.each([
  { nodes: [], want: undefined },
  { nodes: [{ name: 'a', providerID: 'sim:///a' }], want: undefined },
  {
    nodes: [{ name: 'a', providerID: 'sim:///a' }, { name: 'b' }, { name: 'c', providerID: '' }],
    want: 'warn Node b and 1 more of the target cluster of all cells: no provider ID; a machine whose Node has none does not become Running',
  },
])('Nodes of the target cluster of all cells: $want', ({ nodes, want }) => {
  const found = unidentifiedNodesFinding(
    nodes.map(({ name, ...spec }) => ({ metadata: { name }, spec }) as unknown as Node),
  );

  expect(found && `${found.status} ${found.detail}`).toBe(want);
});
