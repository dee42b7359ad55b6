import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { machine, node } from '../../../test/builders.ts';
import { MACHINE_NAME_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import { Store } from '../../kube/cache/store.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { belongsTo, isRemovedWith, nodesRemovedWith, otherOwnerOf } from './node-owner.ts';

const OLD = '2026-01-01T00:00:00Z';
const YOUNG = '2026-01-02T00:00:00Z';

/** Of one of two namespaces that have a target in common; `what` it has recorded. */
function named(
  namespace: string,
  what: Partial<{ vm: string; node: string; joined: boolean; created: string }>,
): Machine {
  return machine((m) => {
    Object.assign(m.metadata, { namespace, name: 'm-1', uid: `${namespace}-m-1` });
    m.metadata.creationTimestamp = what.created ?? OLD;
    m.metadata.labels = what.node === undefined ? {} : { node: what.node };
    m.spec = what.vm === undefined ? {} : { providerID: what.vm };
    m.status = (
      what.joined === true
        ? { currentStatus: { phase: 'Running' }, conditions: [{ type: 'Ready', status: 'True' }] }
        : {}
    ) as (typeof m)['status'];
  });
}

function shown(vm: string): Node {
  return node((n) => {
    n.metadata.name = 'm-1';
    n.metadata.labels = { [MACHINE_NAME_LABEL]: 'm-1' };
    n.spec = { providerID: vm };
  });
}

function known(...machines: Machine[]): Store<Machine> {
  const store = new Store<Machine>(MACHINE_INDEXES);
  for (const one of machines) store.put(one);
  return store;
}

const NEW = {};
const RUNS = { vm: 'vm-1', node: 'm-1', joined: true };
const OTHER = { vm: 'vm-2', node: 'm-1', joined: true };

describe('a Node that shows the name of two machines', () => {
  test.each([
    { what: 'of which one has its VM', onNode: 'vm-1', a: RUNS, b: NEW, owner: 'a', goesWith: ['a'] },
    {
      what: 'of which the older has begun nothing',
      onNode: 'vm-1',
      a: NEW,
      b: { ...RUNS, created: YOUNG },
      owner: 'b',
      goesWith: ['b'],
    },
    {
      what: 'that have different VMs, of which it is one',
      onNode: 'vm-2',
      a: RUNS,
      b: { ...OTHER, created: YOUNG },
      owner: 'b',
      goesWith: ['b'],
    },
    {
      what: 'that have one VM, because one is a copy',
      onNode: 'vm-1',
      a: { ...RUNS, created: YOUNG },
      b: RUNS,
      owner: 'b',
      goesWith: ['b'],
    },
    ...[OLD, '2026-01-01T00:01:00Z'].map((created) => ({
      what: `that have one VM, and were made at ${OLD} and ${created}, so that nobody can say which is the copy`,
      onNode: 'vm-1',
      a: RUNS,
      b: { ...RUNS, created },
      owner: 'a',
      goesWith: [],
    })),
    {
      what: 'that have one VM, and of which one was made more than a minute later',
      onNode: 'vm-1',
      a: RUNS,
      b: { ...RUNS, created: '2026-01-01T00:01:01Z' },
      owner: 'a',
      goesWith: ['a'],
    },
    {
      what: 'that have one VM, of which one was made shortly before the other, but never had a Node',
      onNode: 'vm-1',
      a: { vm: 'vm-1', node: 'm-1' },
      b: { ...RUNS, created: '2026-01-01T00:00:59Z' },
      owner: 'b',
      goesWith: [],
    },
    { what: 'that have other VMs', onNode: 'vm-3', a: RUNS, b: { ...OTHER, created: YOUNG }, owner: 'a', goesWith: [] },
    {
      what: 'and whose VM nobody knows',
      onNode: '',
      a: RUNS,
      b: { ...OTHER, created: YOUNG },
      owner: 'a',
      goesWith: [],
    },
    { what: 'that have begun nothing', onNode: 'vm-1', a: NEW, b: NEW, owner: undefined, goesWith: [] },
    {
      what: 'of which one says to have its VM and was shown none',
      onNode: 'vm-1',
      a: RUNS,
      b: { vm: 'vm-1', created: YOUNG },
      owner: 'a',
      goesWith: ['a'],
    },
  ])('$what', ({ onNode, a, b, owner, goesWith }) => {
    const machines = [named('a', a), named('b', b)];
    const store = known(...machines);
    const it = shown(onNode);
    const those = (is: (one: Machine) => boolean): unknown[] =>
      machines.filter(is).map(({ metadata }) => metadata.namespace);

    expect(those((one) => belongsTo(it, one, store))).toEqual(owner === undefined ? [] : [owner]);
    expect(those((one) => isRemovedWith(it, one, store))).toEqual(goesWith);
    expect(those((one) => nodesRemovedWith([it], one, store).length > 0)).toEqual(goesWith);
  });

  test('is not removed with one that has lost its label node, while the other one has a VM', () => {
    const lost = named('a', { vm: 'vm-1', joined: true });
    const it = shown('');

    expect(nodesRemovedWith([it], lost, known(lost))).toEqual([it]);
    expect(nodesRemovedWith([it], lost, known(lost, named('b', RUNS)))).toEqual([]);
  });

  test('is that of the other one for a machine that is about to record its VM', () => {
    const it = shown('vm-1');
    const asks = named('b', NEW);
    const other = named('a', RUNS);

    expect(otherOwnerOf(it, asks, known(asks, other))?.metadata.namespace).toBe('a');
    expect(otherOwnerOf(it, asks, known(asks, named('a', NEW)))).toBeUndefined();
    expect(otherOwnerOf(it, other, known(asks, other))).toBeUndefined();
  });

  test('belongs to one of them at most, and never goes with one to which it does not belong', () => {
    const recorded = fc.record(
      {
        vm: fc.constantFrom('vm-1', 'vm-2', ''),
        node: fc.constantFrom('m-1', 'n-2'),
        joined: fc.boolean(),
        created: fc.constantFrom(OLD, '2026-01-01T00:00:30Z', YOUNG),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(
        fc.array(recorded, { minLength: 2, maxLength: 4 }),
        fc.constantFrom('vm-1', 'vm-2', 'vm-3', ''),
        (all, onNode) => {
          const machines = all.map((one, i) => named(`n-${i}`, one));
          const store = known(...machines);
          const it = shown(onNode);
          const owners = machines.filter((one) => belongsTo(it, one, store));
          const going = machines.filter((one) => nodesRemovedWith([it], one, store).length > 0);

          expect(owners.length).toBeLessThanOrEqual(1);
          expect(going.every((one) => owners.includes(one))).toBe(true);
        },
      ),
    );
  });
});
