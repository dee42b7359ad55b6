import { expect, test } from '@jest/globals';

import { clusterMachines, kindOf, machines, nodes } from './resource.ts';

test('kinds of one name are told from each other by their group', () => {
  expect([nodes, machines, clusterMachines].map(kindOf)).toEqual([
    'Node',
    'Machine.machine.sapcloud.io',
    'Machine.cluster.k8s.io',
  ]);
});
