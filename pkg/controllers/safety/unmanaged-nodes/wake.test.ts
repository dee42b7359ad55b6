import { expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { MACHINE_NAME_LABEL, MAINTENANCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { NODE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { wakeNodesOf, wakeUnmanagedNodes } from './wake.ts';

test.each([
  { what: 'shows its VM', name: 'n-1', providerID: 'sim:///gone', says: undefined, isLookedAt: true },
  { what: 'says that it is its', name: 'n-1', providerID: '', says: 'gone', isLookedAt: true },
  { what: 'has the name of its Node', name: 'n-gone', providerID: 'sim://v2/gone', says: undefined, isLookedAt: true },
  { what: 'has nothing to do with it', name: 'n-1', providerID: 'sim:///other', says: 'other', isLookedAt: false },
])('a Node that $what is looked at when a machine is gone: $isLookedAt', ({ name, providerID, says, isLookedAt }) => {
  const late = node((n) => {
    n.metadata.name = name;
    n.spec = { providerID };
    if (says !== undefined) n.metadata.labels[MACHINE_NAME_LABEL] = says;
  });
  const target = { cluster: 'target', nodes: new MemoryInformer([late], NODE_INDEXES) } as unknown as Target;
  const looks = new Set<string>();
  const queue = { add: (key: string) => void looks.add(key), addAfter: () => undefined };

  wakeNodesOf([target], queue, { name: 'gone', nodeName: 'n-gone', providerID: 'sim:///gone' });

  expect(looks.has(`target/${name}`)).toBe(isLookedAt);
});

test('a Node is looked at when it is asked for maintenance, and not when something else of it changes', () => {
  const nodes = new MemoryInformer([node()], NODE_INDEXES);
  const target = { cluster: 'target', nodes } as unknown as Target;
  const looks: string[] = [];
  const queue = { add: (key: string) => void looks.push(key), addAfter: () => undefined };
  wakeUnmanagedNodes(new MemoryInformer<Machine>([]), [target], queue);
  const change = (resourceVersion: string, annotations: Record<string, string>): void =>
    nodes.put(node((n) => void Object.assign(n.metadata, { annotations, resourceVersion })));

  change('2', { other: 'true' });
  expect(looks).toEqual([]);
  change('3', { [MAINTENANCE_ANNOTATION]: 'true' });
  expect(looks).toEqual(['target/m-1']);
});
