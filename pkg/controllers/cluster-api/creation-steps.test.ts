import { expect, test } from '@jest/globals';

import { node } from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import type { ClusterAPIMachine } from '../../apis/cluster-api/machine.ts';
import { CLUSTER_API_MACHINE_INDEXES, NODE_INDEXES } from '../../indexes/machine-indexes.ts';
import type { Target } from '../../targets/targets.ts';
import { nodeOf } from './creation-steps.ts';
import type { WorkingMachine } from './machine-pass.ts';
import type { SeenInfrastructure } from './seen.ts';

const ID = 'sim:///1';

const machine = (name: string, nodeName?: string): ClusterAPIMachine => ({
  metadata: { name, namespace: 'ns', uid: `uid-of-${name}`, resourceVersion: '1', creationTimestamp: '' },
  spec: { providerID: ID },
  status: nodeName === undefined ? {} : { nodeRef: { name: nodeName } },
});

const ABSENT: SeenInfrastructure = { kind: 'absent' };
const FOREIGN: SeenInfrastructure = { kind: 'foreign', problem: 'it belongs to Machine first' };

test.each<{
  what: string;
  own?: string;
  other?: ClusterAPIMachine;
  infrastructure?: SeenInfrastructure;
  kind: string;
}>([
  { what: 'that nobody else has', kind: 'found' },
  { what: 'that it has already', own: 'n', other: machine('copy'), kind: 'found' },
  { what: 'that a copy of it says is its own too', own: 'n', other: machine('copy', 'n'), kind: 'found' },
  { what: 'that the Machine has of which it is a copy', other: machine('first', 'n'), kind: 'unknown' },
  { what: 'of infrastructure of another Machine', own: 'n', infrastructure: FOREIGN, kind: 'none' },
])('the Node with the provider id of a Machine, $what, is $kind', ({ own, other, infrastructure = ABSENT, kind }) => {
  const one = machine('m', own);
  const target = {
    nodes: new MemoryInformer(
      [node((n) => void Object.assign(n, { metadata: { ...n.metadata, name: 'n' }, spec: { providerID: ID } }))],
      NODE_INDEXES,
    ),
  } as unknown as Target;
  const machines = new MemoryInformer([one, ...(other === undefined ? [] : [other])], CLUSTER_API_MACHINE_INDEXES);

  expect(nodeOf({ target, machines }, { machine: one as WorkingMachine, infrastructure })).toMatchObject({ kind });
});
