import { expect, test } from '@jest/globals';

import { machine, node } from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { recordedNodeOf } from './recorded-node.ts';

function named(name: string, label: string): Machine {
  return machine((m) => {
    Object.assign(m.metadata, { name, uid: `uid-of-${name}` });
    m.metadata.labels = label === '' ? {} : { node: label };
  });
}

function shown(name: string): Node {
  return node((n) => {
    n.metadata.name = 'n-1';
    if (name !== '') n.metadata.labels[MACHINE_NAME_LABEL] = name;
  });
}

test.each([
  { what: 'names it', label: 'n-1', shows: 'm-1', is: true },
  { what: 'names it, which shows no name yet', label: 'n-1', shows: '', is: true },
  { what: 'names it, which is that of another machine', label: 'n-1', shows: 'm-2', is: false },
  { what: 'names one that does not exist', label: 'n-2', shows: 'm-1', is: false },
  { what: 'names none', label: '', shows: 'm-1', is: false },
  { what: 'names it, and has no target', label: 'n-1', shows: 'm-1', hasTarget: false, is: false },
])('a Machine that $what has it: $is', ({ label, shows, hasTarget = true, is }) => {
  const mine = named('m-1', label);
  const machines = new MemoryInformer([mine, named('m-2', '')], MACHINE_INDEXES);
  const nodes = new MemoryInformer([shown(shows)]);
  const targets = { of: () => (hasTarget ? ({ nodes } as unknown as Target) : undefined) };

  expect(recordedNodeOf({ targets, machines }, mine)?.metadata.name).toBe(is ? 'n-1' : undefined);
});
