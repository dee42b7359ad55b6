import { expect, test } from '@jest/globals';

import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../../../apis/ironcore/machine.ts';
import { CREATION_SENT_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { wakeMachines, type Watched } from './wake.ts';

function machineOf(resourceVersion: string, annotations: Record<string, string> = {}): IronCoreMachine {
  const metadata = { name: 'm', namespace: 'ns', uid: 'u', resourceVersion, creationTimestamp: '', annotations };
  return { metadata, spec: { machineClassRef: { name: 'c' }, machinePoolRef: { name: 'p' } } };
}

test('a Machine is woken by an annotation of somebody, and not by the note of its creation, which would be repeated at once', () => {
  const none = (): MemoryInformer<never> => new MemoryInformer<never>();
  const machines = new MemoryInformer([machineOf('1')], { pool: () => ['p'] });
  const added: string[] = [];
  const watched = {
    machines,
    pools: none(),
    classes: none(),
    volumes: none(),
    networkInterfaces: none(),
    networks: none(),
    served: new Set(['p']),
  } satisfies Watched;
  wakeMachines(watched, { add: (key) => void added.push(key), addAfter: () => undefined });
  added.length = 0;

  machines.put(machineOf('2', { [CREATION_SENT_ANNOTATION]: '2026-01-01T00:00:00Z' }));
  expect(added).toEqual([]);
  machines.put(machineOf('3', { look: 'again' }));
  expect(added).toEqual(['machine/ns/m']);
});
