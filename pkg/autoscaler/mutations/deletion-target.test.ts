import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node } from '../../../test/builders.ts';
import { ReplicasWorld } from '../../../test/fakes/replicas-world.ts';
import { membershipOf } from '../../../test/node-group.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import type { NodeIdentifier } from '../membership.ts';
import { deletionTargetOf } from './delete-nodes.ts';

const deployment = machineDeployment();
const own = machineSet(({ metadata }) => {
  metadata.name = 'own';
  metadata.uid = 'own';
  metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
});
const other = machineSet(({ metadata }) => void Object.assign(metadata, { name: 'other', uid: 'other' }));
const of = (set: typeof own, name: string, nodeName: string, providerID: string) =>
  machine((m) => {
    m.metadata.name = name;
    m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    m.metadata.labels['node'] = nodeName;
    m.spec.providerID = providerID;
  });
const nodeOf = (name: string, providerID: string) =>
  node((n) => {
    n.metadata.name = name;
    n.spec.providerID = providerID;
  });

const deps = new ReplicasWorld({
  deployments: [deployment],
  sets: [own, other],
  machines: [
    of(own, 'joined', 'node-joined', 'sim:///joined'),
    of(own, 'lost', 'node-lost', 'sim:///lost'),
    of(own, 'pending', '', ''),
    of(other, 'foreign', 'node-foreign', 'sim:///foreign'),
    of(own, 'twin-1', 'node-twin-1', 'sim:///twin'),
    of(own, 'twin-2', 'node-twin-2', 'sim:///twin'),
    of(own, 'double-1', 'node-double-1', 'cloud:///1'),
    of(own, 'double-2', 'node-double-2', 'cloud:///2'),
  ],
  nodes: [
    nodeOf('node-joined', 'sim:///joined'),
    nodeOf('node-foreign', 'sim:///foreign'),
    nodeOf('stranger', 'sim:///x'),
    nodeOf('node-twin-1', 'sim:///twin'),
    nodeOf('node-double-1', 'sim:///double'),
    nodeOf('node-double-2', 'sim:///double'),
  ],
});

/** What the autoscaler makes up for an instance without a Node has this annotation. */
const UNREGISTERED = { 'k8s.io/cluster-autoscaler/fake-node-reason': 'unregistered' };
const found = (called: string, isUnregistered = false) => ({ kind: 'machine', machine: called, isUnregistered });

test.each<{ title: string; named: NodeIdentifier; want: object }>([
  { title: 'a Node', named: { name: 'node-joined', providerId: 'sim:///joined' }, want: found('joined') },
  { title: 'a Node without id', named: { name: 'node-joined', providerId: '' }, want: found('joined') },
  { title: 'a Node by its id', named: { name: '', providerId: 'sim:///joined' }, want: found('joined') },
  { title: 'a Node that vanished', named: { name: 'node-lost', providerId: 'sim:///lost' }, want: found('lost') },
  { title: 'one without id that vanished', named: { name: 'node-lost', providerId: '' }, want: found('lost') },
  {
    title: 'a Node whose name another VM has now',
    named: { name: 'node-joined', providerId: 'sim:///before' },
    want: { kind: 'gone' },
  },
  {
    title: 'a Node of another cluster, of the same name and an id that ends alike',
    named: { name: 'node-joined', providerId: 'sim:///elsewhere/joined' },
    want: { kind: 'gone' },
  },
  { title: 'a Node of nobody', named: { name: 'stranger', providerId: 'sim:///x' }, want: { kind: 'unmanaged' } },
  { title: 'nothing', named: { name: '', providerId: '' }, want: { kind: 'nameless' } },
  { title: 'no Node', named: { name: 'gone', providerId: 'sim:///gone' }, want: { kind: 'gone' } },
  {
    title: 'a Node of another group',
    named: { name: 'node-foreign', providerId: 'sim:///foreign' },
    want: { kind: 'foreign' },
  },
  {
    title: 'an instance of which it sees no Node, by its id',
    named: { name: 'sim:///joined', providerId: 'sim:///joined', annotations: UNREGISTERED },
    want: found('joined', true),
  },
  {
    title: 'an instance whose Node vanished before it has seen so',
    named: { name: 'sim:///lost', providerId: 'sim:///lost', annotations: UNREGISTERED },
    want: found('lost', true),
  },
  {
    title: 'a Node by the name that its VM had before',
    named: { name: 'before', providerId: 'sim:///joined' },
    want: found('joined'),
  },
  {
    title: 'one of two Machines of one VM',
    named: { name: 'node-twin-1', providerId: 'sim:///twin' },
    want: found('twin-1'),
  },
  {
    title: 'the one of two Machines of one VM whose Node vanished',
    named: { name: 'node-twin-2', providerId: 'sim:///twin' },
    want: found('twin-2'),
  },
  {
    title: 'neither of two Machines of one VM',
    named: { name: 'gone', providerId: 'sim:///twin' },
    want: { kind: 'gone' },
  },
  {
    title: 'neither of two Nodes of one VM',
    named: { name: 'gone', providerId: 'sim:///double' },
    want: { kind: 'gone' },
  },
  {
    title: 'a placeholder',
    named: { name: 'requested://pending', providerId: 'requested://pending' },
    want: found('pending', true),
  },
  {
    title: 'a placeholder, as name only',
    named: { name: 'requested://pending', providerId: '' },
    want: found('pending', true),
  },
  {
    title: 'the placeholder of a Machine that is gone',
    named: { name: '', providerId: 'requested://gone' },
    want: { kind: 'gone' },
  },
  {
    title: 'the placeholder of another group’s Machine',
    named: { name: '', providerId: 'requested://foreign' },
    want: { kind: 'foreign' },
  },
  {
    title: 'a replica that is lacking',
    named: { name: '', providerId: 'requested://deployment-1#x-2' },
    want: { kind: 'missing', place: 'x-2' },
  },
  {
    title: 'a replica that has its Machine by now',
    named: { name: '', providerId: 'requested://deployment-1#x-1' },
    want: { kind: 'gone' },
  },
  {
    title: 'a replica as another process, or an earlier release, calls it',
    named: { name: '', providerId: 'requested://deployment-1#2' },
    want: { kind: 'gone' },
  },
  {
    title: 'a replica that another group lacks',
    named: { name: '', providerId: 'requested://other#2' },
    want: { kind: 'foreign' },
  },
])('the autoscaler asks for $title', ({ named, want }) => {
  expect(deletionTargetOf(membershipOf(deps), deployment, named, ['x-2', 'x-3'])).toMatchObject(want);
});

test.each([
  { name: 'c', want: { kind: 'gone' } },
  { name: 'b', want: found('twin-2') },
])('of two Machines of one VM whose Node is gone only the name of the Node can tell: $name', ({ name, want }) => {
  const twins = new ReplicasWorld({
    deployments: [deployment],
    sets: [own],
    machines: [of(own, 'twin-1', 'a', 'sim:///twin'), of(own, 'twin-2', 'b', 'sim:///twin')],
  });

  expect(deletionTargetOf(membershipOf(twins), deployment, { name, providerId: 'sim:///twin' }, [])).toMatchObject(
    want,
  );
});

test('of a group that was deleted and made anew under the same name the Machines of the first are foreign', () => {
  const anew = machineDeployment(({ metadata }) => void (metadata.uid = 'anew'));

  const asked = deletionTargetOf(membershipOf(deps), anew, { name: 'node-joined', providerId: 'sim:///joined' }, []);

  expect(asked).toEqual({ node: 'node-joined', kind: 'foreign' });
});

test.each([
  { title: 'which has its name and its VM', providerID: 'metal:///7', now: 'second', want: { kind: 'another' } },
  { title: 'which has its name', providerID: '', now: 'second', want: { kind: 'another' } },
  { title: 'whose Node has not joined', providerID: 'metal:///7', now: undefined, want: { kind: 'another' } },
  { title: 'whose Node shows the earlier one yet', providerID: 'metal:///7', now: 'first', want: found('second') },
])(
  'the autoscaler asks for a Node of an earlier Machine, and finds another one $title',
  ({ providerID, now, want }) => {
    const joined = node(({ metadata, spec }) => {
      Object.assign(metadata, { name: 'server-7', labels: { [MACHINE_NAME_LABEL]: now } });
      spec.providerID = providerID;
    });
    const world = new ReplicasWorld({
      deployments: [deployment],
      sets: [own],
      machines: [of(own, 'second', 'server-7', providerID)],
      nodes: now === undefined ? [] : [joined],
    });
    const named = { name: 'server-7', providerId: providerID, labels: { [MACHINE_NAME_LABEL]: 'first' } };

    expect(deletionTargetOf(membershipOf(world), deployment, named, [])).toMatchObject(want);
  },
);
