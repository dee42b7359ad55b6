import { expect, test } from '@jest/globals';

import { machine, node } from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { hasLeftoverNode } from './ownerless-vms.ts';

const OF_NOTE = 'aws:///eu-west-1/i-1';

test.each([
  { title: 'its Node', ofNode: OF_NOTE, ofMachine: '', want: true },
  {
    title: 'its Node, which writes the id in another form',
    ofNode: 'aws:///eu-west-1a/i-1',
    ofMachine: '',
    want: true,
  },
  { title: 'the Node of another VM', ofNode: 'aws:///eu-west-1a/i-2', ofMachine: '', want: false },
  { title: 'a Node without provider id', ofNode: '', ofMachine: '', want: false },
  { title: 'its Node, and a Machine that took it over', ofNode: OF_NOTE, ofMachine: OF_NOTE, want: false },
  {
    title: 'its Node, and a Machine that has it in another form',
    ofNode: OF_NOTE,
    ofMachine: 'aws:///eu-west-1a/i-1',
    want: false,
  },
  { title: 'its Node, and a Machine of another VM', ofNode: OF_NOTE, ofMachine: 'aws:///eu-west-1/i-2', want: true },
])('$title: $want', ({ ofNode, ofMachine, want }) => {
  const machines = new MemoryInformer([machine((m) => void (m.spec.providerID = ofMachine))]);
  const nodes = new MemoryInformer([node((n) => void (n.spec.providerID = ofNode))]);

  expect(hasLeftoverNode(OF_NOTE, { machines, targets: [{ nodes }] })).toBe(want);
});
