import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node } from '../../test/builders.ts';
import { MemoryInformer } from '../../test/memory-informer.ts';
import { MACHINE_NAME_LABEL, NODE_LABEL } from '../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../apis/meta.ts';
import { nodeAccess } from '../controllers/machine-facts/node-access.ts';
import { MACHINE_INDEXES, NODE_INDEXES } from '../operator/indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../operator/indexes/owner-index.ts';
import type { Target } from '../kube/targets/targets.ts';
import { Membership } from './membership.ts';

const deployment = machineDeployment((d) => (d.metadata.name = 'pool-a'));
const set = machineSet((s) => {
  s.metadata.name = 'pool-a-1';
  ownedBy(s, deployment);
});

function ownedBy(object: KubeObject, { metadata }: KubeObject): void {
  object.metadata.ownerReferences = [
    {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'Any',
      name: metadata.name,
      uid: metadata.uid,
      controller: true,
    },
  ];
}

const joined = machine((m) => {
  m.metadata.name = 'joined';
  m.metadata.labels = { [NODE_LABEL]: 'node-1' };
  m.spec.providerID = 'cloud:///1';
  ownedBy(m, set);
});
const creating = machine((m) => {
  m.metadata.name = 'creating';
  m.metadata.labels = {};
  m.spec.providerID = '';
  ownedBy(m, set);
});
const gone = machine((m) => {
  m.metadata.name = 'gone';
  m.metadata.labels = { [NODE_LABEL]: 'node-gone' };
  m.spec.providerID = 'cloud:///gone';
  ownedBy(m, set);
});
const stranger = machine((m) => {
  m.metadata.name = 'stranger';
  m.metadata.labels = {};
  m.spec.providerID = 'cloud:///9';
});
const nodeOf = (name: string, providerID: string | undefined, shows?: string) =>
  node((n) => {
    n.metadata.name = name;
    n.metadata.labels = shows === undefined ? {} : { [MACHINE_NAME_LABEL]: shows };
    n.spec = providerID === undefined ? {} : { providerID };
  });

function membership(sets = [set]): Membership {
  const machines = new MemoryInformer([joined, creating, gone, stranger], {
    ...MACHINE_INDEXES,
    [CONTROLLER_INDEX]: controllerIndex,
  });
  const nodes = new MemoryInformer(
    [
      nodeOf('node-1', 'cloud:///1', 'joined'),
      nodeOf('node-new', undefined, 'creating'),
      nodeOf('alone', 'cloud:///x'),
    ],
    NODE_INDEXES,
  );
  return new Membership({
    machines,
    machineSets: new MemoryInformer(sets, { [CONTROLLER_INDEX]: controllerIndex }),
    machineDeployments: new MemoryInformer([deployment]),
    nodes,
    nodesOf: (m) => nodeAccess({ nodes } as unknown as Target, machines).ofMachine(m),
  });
}

describe('membership', () => {
  test.each([
    { what: 'a Node by its providerID', providerId: 'cloud:///1', name: 'node-1', want: 'joined' },
    { what: 'a Node without providerID by its name', providerId: '', name: 'node-new', want: 'creating' },
    {
      what: 'a Node whose providerID is not there yet in the cache',
      providerId: 'cloud:///new',
      name: 'node-new',
      want: 'creating',
    },
    { what: 'a Node that is gone, by its providerID', providerId: 'cloud:///gone', name: 'node-gone', want: 'gone' },
    {
      what: 'a Node that is gone, by a providerID of another form',
      providerId: 'cloud:///zone-1/gone',
      name: 'node-gone',
      want: 'gone',
    },
    { what: 'a placeholder', providerId: 'requested://creating', name: 'requested://creating', want: 'creating' },
    { what: 'a placeholder of a Machine that has joined', providerId: 'requested://joined', name: 'x', want: 'joined' },
    { what: 'a placeholder of a Machine that is gone', providerId: 'requested://no', name: 'x', want: undefined },
    { what: 'a replica without Machine', providerId: 'requested://pool-a#0', name: 'x', want: undefined },
    { what: 'a Node of nobody', providerId: 'cloud:///x', name: 'alone', want: undefined },
    { what: 'another VM under the name of a Node', providerId: 'cloud:///other', name: 'node-1', want: undefined },
    {
      what: 'another Node under the name of one that is there, as of another cluster, whose id ends alike',
      providerId: 'cloud:///zone-2/1',
      name: 'node-1',
      want: undefined,
    },
    {
      what: 'another VM under the name of a Node that is gone',
      providerId: 'cloud:///other',
      name: 'node-gone',
      want: undefined,
    },
    { what: 'nothing', providerId: '', name: '', want: undefined },
  ])('$what belongs to Machine $want', ({ providerId, name, want }) => {
    expect(membership().machineOf({ providerId, name })?.metadata.name).toBe(want);
  });

  test('the Machines of a MachineDeployment are those of its sets, and know it', () => {
    const found = membership();

    expect(found.machinesOf(deployment).map(({ metadata }) => metadata.name)).toEqual(['creating', 'gone', 'joined']);
    expect(found.deploymentOf(joined)?.metadata.name).toBe('pool-a');
    expect(found.deploymentOf(stranger)).toBeUndefined();
    expect(found.nodeOf(joined)?.metadata.name).toBe('node-1');
    expect(found.nodeOf(gone)).toBeUndefined();
  });

  test('and not those of a set that it selects no more, which decisions leave out too', () => {
    const released = { ...set, metadata: { ...set.metadata, labels: { pool: 'another' } } };

    expect(membership([released]).machinesOf(deployment)).toEqual([]);
  });

  test('a Node that has just joined is its Machine’s before it shows so', () => {
    const young = machine((m) => {
      m.metadata.labels = { [NODE_LABEL]: 'alone' };
      m.spec.providerID = '';
    });

    expect(membership().nodeOf(young)?.metadata.name).toBe('alone');
  });

  test('a set of the same name and another UID is not the owner', () => {
    const orphan = machine((m) => ownedBy(m, { metadata: { ...set.metadata, uid: 'earlier' } }));

    expect(membership().deploymentOf(orphan)).toBeUndefined();
  });
});
