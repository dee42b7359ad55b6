import { expect, test } from '@jest/globals';

import { machine, secret } from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { SECRET_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { keyOf, type KubeObject } from '../../apis/meta.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import { wakeRoleBindings } from './index.ts';

const KEY = 'default/machinist-machines';
const binding: KubeObject = {
  metadata: { name: 'machinist-machines', namespace: 'default', uid: 'b', resourceVersion: '1', creationTimestamp: '' },
};

test('a RoleBinding is looked at when it changes, and when the last that held it up has gone', () => {
  const roleBindings = new MemoryInformer([binding]);
  const machines = new MemoryInformer([machine()]);
  const held = secret((s) => void (s.metadata.finalizers = [SECRET_FINALIZER]));
  const another = secret((s) => Object.assign(s.metadata, { name: 'another', finalizers: [SECRET_FINALIZER] }));
  const secrets = new MemoryInformer([held, another]);
  const woken: string[] = [];
  wakeRoleBindings(
    {
      roleBindings,
      machines,
      machineSets: new MemoryInformer([]),
      machineDeployments: new MemoryInformer([]),
      classes: new MemoryInformer([]),
      secrets,
    },
    { add: (key: string) => void woken.push(key) } as unknown as Queue,
  );
  const wokenBy = (change: () => void): string[] => {
    woken.length = 0;
    change();
    return [...woken];
  };

  expect(wokenBy(() => machines.put(machine((m) => void (m.metadata.resourceVersion = '2'))))).toEqual([]);
  expect(wokenBy(() => machines.remove('default/m-1'))).toEqual([KEY]);
  expect(wokenBy(() => secrets.put({ ...held, metadata: { ...held.metadata, resourceVersion: '2' } }))).toEqual([]);
  const letGo = { ...held, metadata: { ...held.metadata, resourceVersion: '3', finalizers: [] } };
  expect(wokenBy(() => secrets.put(letGo))).toEqual([KEY]);
  expect(wokenBy(() => secrets.remove(keyOf(held)))).toEqual([]);
  expect(wokenBy(() => secrets.remove(keyOf(another)))).toEqual([KEY]);
  const other = { metadata: { ...binding.metadata, name: 'other', uid: 'o' } };
  expect(wokenBy(() => roleBindings.put(other))).toEqual(['default/other']);
  expect(wokenBy(() => roleBindings.remove('default/other'))).toEqual([KEY]);
  expect(wokenBy(() => roleBindings.put({ metadata: { ...binding.metadata, resourceVersion: '2' } }))).toEqual([KEY]);
});
