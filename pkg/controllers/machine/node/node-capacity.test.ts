import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, node } from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { capacityChange } from './node-capacity.ts';

const APPLIED = 'node.machine.sapcloud.io/last-applied-virtual-capacity';
const GPU = 'example.com/gpu';
const MEMORY = 'example.com/memory';

type Quantities = Record<string, string | number>;

function classWith(virtualCapacity: Quantities | undefined): ReturnType<typeof machineClass> {
  return machineClass((c) => {
    if (virtualCapacity !== undefined) c.nodeTemplate.virtualCapacity = virtualCapacity;
  });
}

function nodeWith(capacity: Record<string, string>, record?: string): ReturnType<typeof node> {
  return node((n) => {
    n.status.capacity = { cpu: '4', ...capacity };
    if (record !== undefined) n.metadata.annotations[APPLIED] = record;
  });
}

describe('the virtual capacity of a Node', () => {
  test.each([
    { what: 'nothing is wanted and nothing was applied', wanted: {}, node: nodeWith({}), want: undefined },
    {
      what: 'a quantity is missing',
      wanted: { [MEMORY]: '2Gi', [GPU]: 2 },
      node: nodeWith({}),
      want: { capacity: { [MEMORY]: '2Gi', [GPU]: '2' }, record: `{"${GPU}":"2","${MEMORY}":"2Gi"}` },
    },
    {
      what: 'a quantity is spelled in another way',
      wanted: { [MEMORY]: '2Gi' },
      node: nodeWith({ [MEMORY]: '2048Mi' }, `{"${MEMORY}":"2147483648"}`),
      want: undefined,
    },
    {
      what: 'a quantity has another value',
      wanted: { [GPU]: '3' },
      node: nodeWith({ [GPU]: '2' }, `{"${GPU}":"2"}`),
      want: { capacity: { [GPU]: '3' }, record: `{"${GPU}":"3"}` },
    },
    {
      what: 'somebody took a quantity away',
      wanted: { [GPU]: '2' },
      node: nodeWith({}, `{"${GPU}":"2"}`),
      want: { capacity: { [GPU]: '2' }, record: undefined },
    },
    {
      what: 'a quantity is not wanted any more',
      wanted: {},
      node: nodeWith({ [GPU]: '2', 'others.com/x': '1' }, `{"${GPU}":"2"}`),
      want: { capacity: { [GPU]: null }, record: null },
    },
    {
      what: 'the record was lost after the status was written',
      wanted: { [GPU]: '2' },
      node: nodeWith({ [GPU]: '2' }),
      want: { capacity: undefined, record: `{"${GPU}":"2"}` },
    },
    {
      what: 'the record cannot be read: it removes nothing',
      wanted: { [GPU]: '2' },
      node: nodeWith({ [GPU]: '2', [MEMORY]: '1' }, '{{{'),
      want: { capacity: undefined, record: `{"${GPU}":"2"}` },
    },
  ])('is made right when $what', ({ wanted, node: current, want }) => {
    expect(capacityChange(classWith(wanted), current)).toEqual(want);
  });

  test('is left alone for a class that has no nodeTemplate, or is missing', () => {
    const { nodeTemplate: _none, ...bare } = classWith(undefined);

    expect(capacityChange(bare, nodeWith({ [GPU]: '2' }, `{"${GPU}":"2"}`))).toBeUndefined();
    expect(capacityChange(undefined, nodeWith({ [GPU]: '2' }, `{"${GPU}":"2"}`))).toBeUndefined();
  });

  test('is written to the status first, and recorded along with the rest of the template', async () => {
    const world = new FakeWorld();
    world.classes.put(classWith({ [GPU]: 2 }));
    world.machines.put(
      machine((m) => Object.assign(m.metadata, { finalizers: ['machine.sapcloud.io/machine-controller-manager'] })),
    );
    world.nodes.cache.put(nodeWith({}));

    await world.reconcile();

    expect(world.nodes.done).toEqual(['status m-1', 'patch m-1']);
    expect(world.nodes.patches).toMatchObject([
      { metadata: { finalizers: expect.any(Array), labels: {}, annotations: { [APPLIED]: `{"${GPU}":"2"}` } } },
    ]);
  });
});
