import { expect, test } from '@jest/globals';

import { MemoryInformer } from '../../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import type { KubeObject } from '../../../../apis/meta.ts';
import { IRONCORE_MACHINE_INDEXES, IRONCORE_VOLUME_INDEXES } from '../indexes.ts';
import type { IronCoreMachinePool } from '../../api/machine-pool.ts';
import {
  CREATION_SENT_ANNOTATION,
  DELETION_SENT_ANNOTATION,
  MISSING_WITH_ANNOTATION,
} from '../../../../apis/machine/v1alpha1/labels.ts';
import { wakeIronCoreMachines } from './wake.ts';

function watchedOf(machines: MemoryInformer<IronCoreMachine>) {
  const none = (): MemoryInformer<never> => new MemoryInformer<never>();
  return {
    machines,
    pools: new MemoryInformer<IronCoreMachinePool>([poolOf('1')]),
    classes: none(),
    volumes: new MemoryInformer<IronCoreVolume>([], IRONCORE_VOLUME_INDEXES),
    networkInterfaces: none(),
    networks: none(),
    secrets: new MemoryInformer<KubeObject>(),
    prefixes: new MemoryInformer<KubeObject>(),
  } satisfies Parameters<typeof wakeIronCoreMachines>[0];
}

function poolOf(resourceVersion: string, annotations: Record<string, string> = {}): IronCoreMachinePool {
  return { metadata: { name: 'p', uid: 'p', resourceVersion, creationTimestamp: '', annotations } };
}

function machineOf(resourceVersion: string, annotations: Record<string, string> = {}): IronCoreMachine {
  const metadata = { name: 'm', namespace: 'ns', uid: 'u', resourceVersion, creationTimestamp: '', annotations };
  return { metadata, spec: { machineClassRef: { name: 'c' }, machinePoolRef: { name: 'p' } } };
}

test('a Machine is woken by an annotation of somebody, and not by our own notes, after which it would all be done again at once', () => {
  const machines = new MemoryInformer([machineOf('1')], { pool: () => ['p'] });
  const added: string[] = [];
  const watched = watchedOf(machines);
  wakeIronCoreMachines(watched, new Set(['p']), { add: (key) => void added.push(key), addAfter: () => undefined });
  added.length = 0;

  machines.put(machineOf('2', { [CREATION_SENT_ANNOTATION]: '2026-01-01T00:00:00Z' }));
  machines.put(machineOf('3', { [DELETION_SENT_ANNOTATION]: 'sent u' }));
  machines.put(machineOf('4', { [MISSING_WITH_ANNOTATION]: 'id-1' }));
  expect(added).toEqual([]);
  machines.put(machineOf('5', { look: 'again' }));
  expect(added).toEqual(['machine/ns/m']);
});

test('Machines of a pool are woken when somebody gives up what its runtime does not show, and by no other annotation', () => {
  const watched = watchedOf(new MemoryInformer([machineOf('1')], { pool: () => ['p'] }));
  const added: string[] = [];
  wakeIronCoreMachines(watched, new Set(['p']), { add: (key) => void added.push(key), addAfter: () => undefined });
  added.length = 0;

  watched.pools.put(poolOf('2', { look: 'again' }));
  expect(added).toEqual(['pool/p']);
  watched.pools.put(poolOf('3', { 'safety.machine.sapcloud.io/give-up-missing-machines-until': 'soon' }));
  expect(added.slice(1)).toEqual(['pool/p', 'machine/ns/m']);
});

test('a Machine is woken by the Secrets that it and its Volumes name, and by the Prefix of its NetworkInterface', () => {
  const meta = (name: string, resourceVersion = '1') => ({
    name,
    namespace: 'ns',
    uid: name,
    resourceVersion,
    creationTimestamp: '',
  });
  const machine: IronCoreMachine = {
    ...machineOf('1'),
    spec: {
      ...machineOf('1').spec,
      ignitionRef: { name: 'ignition' },
      volumes: [{ name: 'root', volumeRef: { name: 'v' } }],
      networkInterfaces: [{ name: 'eth', networkInterfaceRef: { name: 'nic' } }],
    },
  };
  const watched = watchedOf(new MemoryInformer([machine], IRONCORE_MACHINE_INDEXES));
  watched.volumes.put({
    metadata: meta('v'),
    spec: { encryption: { secretRef: { name: 'key' } } },
    status: { access: { secretRef: { name: 'access' } } },
  });
  const added: string[] = [];
  wakeIronCoreMachines(watched, new Set(['p']), { add: (key) => void added.push(key), addAfter: () => undefined });
  added.length = 0;
  const owner = { apiVersion: 'networking.ironcore.dev/v1alpha1', kind: 'NetworkInterface', name: 'nic', uid: 'nic' };

  watched.secrets.put({ metadata: meta('other') });
  watched.prefixes.put({ metadata: meta('nic-0') });
  watched.prefixes.put({ metadata: { ...meta('x-0'), ownerReferences: [{ ...owner, name: 'x', controller: true }] } });
  expect(added).toEqual([]);

  for (const name of ['ignition', 'key', 'access']) watched.secrets.put({ metadata: meta(name) });
  watched.prefixes.put({ metadata: { ...meta('nic-1'), ownerReferences: [{ ...owner, controller: true }] } });
  watched.secrets.remove('ns/ignition');
  expect(added).toEqual(Array.from({ length: 5 }, () => 'machine/ns/m'));
});
