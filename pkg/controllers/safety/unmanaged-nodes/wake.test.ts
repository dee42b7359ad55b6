import { expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { MACHINE_NAME_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Target } from '../../../targets/targets.ts';
import { NODE_INDEXES } from '../../../indexes/machine-indexes.ts';
import { wakeNodesOf } from './wake.ts';

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
