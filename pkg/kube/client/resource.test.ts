import { expect, test } from '@jest/globals';

import { kindOf, machines, nodes } from './resource.ts';
import { clusterMachines } from '../../worlds/mirantis/api/resources.ts';

test('kinds of one name are told from each other by their group', () => {
  expect([nodes, machines, clusterMachines].map(kindOf)).toEqual([
    'Node',
    'Machine.machine.sapcloud.io',
    'Machine.cluster.k8s.io',
  ]);
});
