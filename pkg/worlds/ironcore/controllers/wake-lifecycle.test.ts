import { expect, test } from '@jest/globals';

import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachineClass } from '../api/machine-class.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import type { Lease } from '../../../apis/wire.ts';
import { IRONCORE_MACHINE_INDEXES } from './indexes.ts';
import { wakeLifecycle, lifecycleObjectOf } from './wake-lifecycle.ts';

const meta = (name: string, resourceVersion = '1', namespace?: string) => ({
  name,
  uid: name,
  resourceVersion,
  creationTimestamp: '2026-01-01T00:00:00Z',
  ...(namespace !== undefined && { namespace }),
});
const machine = (name: string, pool?: string, resourceVersion = '1'): IronCoreMachine => ({
  metadata: meta(name, resourceVersion, 'ns'),
  spec: { machineClassRef: { name: 'c' }, ...(pool !== undefined && { machinePoolRef: { name: pool } }) },
});
const pool = (effects: readonly string[], resourceVersion = '1'): IronCoreMachinePool => ({
  metadata: meta('p', resourceVersion),
  spec: { taints: effects.map((effect) => ({ key: 'k', effect })) },
});

interface World {
  readonly machines: MemoryInformer<IronCoreMachine>;
  readonly pools: MemoryInformer<IronCoreMachinePool>;
  readonly classes: MemoryInformer<IronCoreMachineClass>;
  readonly poolLeases: MemoryInformer<Lease>;
}

test.each<{ what: string; happens: (world: World) => void; woken: readonly string[] }>([
  { what: 'a pool that changes', happens: ({ pools }) => pools.put(pool([], '2')), woken: ['pool p'] },
  {
    what: 'a pool with another taint, and the Machines in it',
    happens: ({ pools }) => pools.put(pool(['NoExecute'], '2')),
    woken: ['pool p', 'machine ns/m'],
  },
  {
    what: 'a pool whose Lease is renewed',
    happens: ({ poolLeases }) => poolLeases.put({ metadata: meta('p', '2', 'ironcore-machinepool-lease') }),
    woken: ['pool p'],
  },
  {
    what: 'a class that changes',
    happens: ({ classes }) => classes.put({ metadata: meta('c'), capabilities: {} }),
    woken: ['class c'],
  },
  {
    what: 'a Machine that gets a pool',
    happens: ({ machines }) => machines.put(machine('n', 'p')),
    woken: ['machine ns/n'],
  },
  {
    what: 'no Machine that only says something',
    happens: ({ machines }) => machines.put({ ...machine('m', 'p', '2'), status: { state: 'Running' } }),
    woken: [],
  },
  {
    what: 'the class of a Machine that is gone',
    happens: ({ machines }) => machines.remove('ns/m'),
    woken: ['class c'],
  },
])('$what: looked at', ({ happens, woken }) => {
  const world = {
    machines: new MemoryInformer([machine('m', 'p'), machine('elsewhere', 'q')], IRONCORE_MACHINE_INDEXES),
    pools: new MemoryInformer([pool([])]),
    classes: new MemoryInformer<IronCoreMachineClass>(),
    poolLeases: new MemoryInformer<Lease>(),
  };
  const keys: string[] = [];
  wakeLifecycle(world, { add: (key) => void keys.push(key), addAfter: () => undefined });

  happens(world);

  expect(keys.map((key) => lifecycleObjectOf(key)).map(({ kind, key }) => `${kind} ${key}`)).toEqual(woken);
});
