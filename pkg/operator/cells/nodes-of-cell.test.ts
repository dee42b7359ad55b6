import { expect, test } from '@jest/globals';

import { MACHINE_NAME_LABEL, NODE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import { whereNodesAre } from './nodes-of-cell.ts';

const VM = 'aws:///eu-west-1/i-1';
const OTHER_VM = 'aws:///eu-west-1/i-2';

function machineWith(name: string, { node = 'ip-10-250-1-17', providerID = VM, conditions = 1 } = {}): Machine {
  return {
    metadata: { name, ...(node !== '' && { labels: { [NODE_LABEL]: node } }) },
    spec: { providerID },
    status: { conditions: Array.from({ length: conditions }, () => ({ type: 'Ready', status: 'True' })) },
  } as unknown as Machine;
}

function whereAmong(machines: readonly Machine[], found: readonly Node[]): string {
  return whereNodesAre(machines, { get: (key) => found.find(({ metadata }) => metadata.name === key) });
}

function nodeWith({ name = 'ip-10-250-1-17', machine = '', providerID = VM } = {}): Node {
  const labels = machine === '' ? {} : { [MACHINE_NAME_LABEL]: machine };
  return { metadata: { name, labels }, spec: { providerID } } as unknown as Node;
}

test.each`
  says                                              | node                                               | is
  ${'shows the Machine and its VM'}                 | ${{ machine: 'm' }}                                | ${'here'}
  ${'shows the Machine and no provider ID'}         | ${{ machine: 'm', providerID: '' }}                | ${'here'}
  ${'shows the Machine and an ID of another form'}  | ${{ machine: 'm', providerID: 'kubelet://ip-10' }} | ${'here'}
  ${'shows the Machine and another VM'}             | ${{ machine: 'm', providerID: OTHER_VM }}          | ${'elsewhere'}
  ${'shows no Machine, and the VM'}                 | ${{}}                                              | ${'here'}
  ${'shows no Machine, and the VM in another zone'} | ${{ providerID: 'aws:///eu-west-1a/i-1' }}         | ${'here'}
  ${'shows no Machine and no provider ID'}          | ${{ providerID: '' }}                              | ${'elsewhere'}
  ${'shows no Machine, and another VM'}             | ${{ providerID: OTHER_VM }}                        | ${'elsewhere'}
  ${'shows no Machine, and an ID of another form'}  | ${{ providerID: 'kubelet://ip-10' }}               | ${'elsewhere'}
  ${'shows another Machine'}                        | ${{ machine: 'other' }}                            | ${'elsewhere'}
  ${'has another name'}                             | ${{ name: 'ip-10-250-1-18', machine: 'm' }}        | ${'elsewhere'}
`('a Node of the recorded name that $says is $is', ({ node, is }) => {
  expect(whereAmong([machineWith('m')], [nodeWith(node as Parameters<typeof nodeWith>[0])])).toBe(is);
});

test('without a recorded Node, that of the name of the Machine counts', () => {
  expect(whereAmong([machineWith('m', { node: '' })], [nodeWith({ name: 'm' })])).toBe('here');
});

test('one Node of several Machines is enough', () => {
  const machines = [machineWith('gone', { node: 'gone' }), machineWith('m')];

  expect(whereAmong(machines, [nodeWith({ machine: 'm' })])).toBe('here');
  expect(whereAmong(machines, [])).toBe('elsewhere');
});

test('Machines that have had no Node yet say nothing', () => {
  expect(whereAmong([machineWith('m', { conditions: 0 })], [])).toBe('none');
  expect(whereAmong([], [nodeWith()])).toBe('none');
});
