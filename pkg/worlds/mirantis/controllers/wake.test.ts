import { expect, test } from '@jest/globals';

import { cloudCluster, clusterMachine, machinePool } from '../../../../test/cluster-machine.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { wakeSettings } from './wake.ts';

const settings = (name: string, resourceVersion: string): KubeObject => ({
  metadata: { ...cloudCluster().metadata, name, uid: `uid-of-${name}`, resourceVersion },
});

// promise: front-end-mirantis/changed-settings-cluster-seen
test.each([
  { of: 'configMaps', name: 'cluster-1', woken: ['MachinePool/default/pool-1', 'Machine/default/m-1'] },
  { of: 'secrets', name: 'cluster-1', woken: ['MachinePool/default/pool-1', 'Machine/default/m-1'] },
  { of: 'secrets', name: 'other', woken: [] },
] as const)('a change of $name of the $of wakes $woken', ({ of, name, woken }) => {
  const watched = {
    configMaps: new MemoryInformer<KubeObject>(),
    secrets: new MemoryInformer<KubeObject>(),
    clusterMachines: new MemoryInformer([clusterMachine()]),
    machinePools: new MemoryInformer([machinePool()]),
  };
  const keys: string[] = [];
  wakeSettings(watched, { add: (key: string) => void keys.push(key) } as never);

  watched[of].put(settings(name, '1'));
  watched[of].put(settings(name, '2'));
  watched[of].remove(`default/${name}`);

  expect(keys).toEqual([...woken, ...woken, ...woken]);
});
