import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { IronCoreMachine, IronCoreMachineSpec } from '../api/machine.ts';
import type { IronCoreMachinePool } from '../api/machine-pool.ts';
import type { IronCoreTaint, Toleration } from '../api/taint.ts';
import { place } from './place.ts';
import { PlacesTaken } from './places-taken.ts';

const CLASS = 'machineclass-sample';
const FROM_SERVER = { resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };

function machine(uid: string, spec: Partial<IronCoreMachineSpec> = {}): IronCoreMachine {
  return { metadata: { name: uid, uid, ...FROM_SERVER }, spec: { machineClassRef: { name: CLASS }, ...spec } };
}

interface PoolOptions {
  readonly capacity?: number | string;
  readonly ready?: 'True' | 'False' | 'Unknown' | undefined;
  readonly taints?: readonly IronCoreTaint[];
  readonly labels?: Record<string, string>;
}

function pool(
  name: string,
  { capacity, ready = 'True', taints = [], labels = {} }: PoolOptions = {},
): IronCoreMachinePool {
  return {
    metadata: { name, uid: name, labels, ...FROM_SERVER },
    spec: { taints },
    status: {
      conditions: [{ type: 'Ready', status: ready, reason: '', message: '' }],
      // Has the Machines taken off already, and is behind: nothing is decided by it.
      allocatable: { [`class/machine.${CLASS}`]: 0 },
      ...(capacity !== undefined && { capacity: { [`class/machine.${CLASS}`]: capacity } }),
    },
  };
}

const going = (one: IronCoreMachinePool): IronCoreMachinePool => ({
  ...one,
  metadata: { ...one.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});
const free = new PlacesTaken();
const gpu: IronCoreTaint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' };

describe('a Machine goes', () => {
  test.each([
    { where: 'where most places are free', pools: [pool('a', { capacity: 2 }), pool('b', { capacity: 5 })], want: 'b' },
    {
      where: 'of equal pools to the first by name',
      pools: [pool('b', { capacity: 5 }), pool('a', { capacity: '5' })],
      want: 'a',
    },
    {
      where: 'to no pool that is not ready',
      pools: [pool('a', { capacity: 9, ready: 'Unknown' }), pool('b', { capacity: 1 })],
      want: 'b',
    },
    {
      where: 'to no pool with a taint that it does not tolerate',
      pools: [pool('a', { capacity: 9, taints: [gpu] }), pool('b', { capacity: 1 })],
      want: 'b',
    },
    {
      where: 'to one whose taint it tolerates',
      spec: { tolerations: [{ key: 'gpu', operator: 'Exists' }] },
      pools: [pool('a', { capacity: 9, taints: [gpu] }), pool('b', { capacity: 1 })],
      want: 'a',
    },
    {
      where: 'to a pool with the labels that it asks for',
      spec: { machinePoolSelector: { zone: 'z1' } },
      pools: [pool('a', { capacity: 9 }), pool('b', { capacity: 1, labels: { zone: 'z1', more: 'x' } })],
      want: 'b',
    },
    {
      where: 'to no pool that is going',
      pools: [going(pool('a', { capacity: 9 })), pool('b', { capacity: 1 })],
      want: 'b',
    },
    { where: 'to a pool with its class', pools: [pool('a'), pool('b', { capacity: 1 })], want: 'b' },
  ])('$where', ({ pools, spec, want }) => {
    expect(place(machine('m', spec), pools, free)).toEqual({ pool: want });
  });

  test('where the Machines that are there leave most room, each of them counted once', () => {
    const taken = new PlacesTaken();
    taken.seen(machine('m-1', { machinePoolRef: { name: 'a' } }));
    taken.seen(machine('m-2', { machinePoolRef: { name: 'a' } }));
    taken.seen(machine('other', { machinePoolRef: { name: 'b' }, machineClassRef: { name: 'other' } }));

    const pools = [pool('a', { capacity: 3 }), pool('b', { capacity: 1 })];

    expect(place(machine('m'), pools, taken)).toEqual({ pool: 'a' });
  });

  // promise: ironcore/placing-machines/pool-ten-takes-ten
  test('departure: a pool of ten takes ten, not five', () => {
    const pools = [pool('a', { capacity: 10 })];

    expect(placeAll(11, pools).map((one) => ('pool' in one ? one.pool : 'waits'))).toEqual([
      ...Array.from({ length: 10 }, () => 'a'),
      'waits',
    ]);
  });

  test('with others: of pools with 2, 5 and 5 places, one of them not ready, ten take 2 and 5, and 3 wait', () => {
    const pools = [pool('a', { capacity: 2 }), pool('b', { capacity: 5 }), pool('c', { capacity: 5, ready: 'False' })];

    const placed = Object.groupBy(placeAll(10, pools), (one) => ('pool' in one ? one.pool : one.why));

    const counts = Object.entries(placed).map(([where, ones]) => [where, ones?.length]);
    expect(new Map(counts as [string, number][])).toEqual(
      new Map([
        ['a', 2],
        ['b', 5],
        ['No MachinePool is suitable: 1 not ready, 2 full', 3],
      ]),
    );
  });
});

/** Places Machines one after the other, as one lane does. */
function placeAll(count: number, pools: readonly IronCoreMachinePool[]): ReturnType<typeof place>[] {
  const taken = new PlacesTaken();
  return Array.from({ length: count }, (_, index) => {
    const one = machine(`m-${index}`);
    const placement = place(one, pools, taken);
    if ('pool' in placement) taken.take(one, placement.pool);
    return placement;
  });
}

describe('a Machine waits, and says why', () => {
  test.each([
    { pools: [], why: 'There is no MachinePool' },
    { pools: [pool('a', { capacity: 0 })], why: 'No MachinePool is suitable: 1 without machineclass-sample' },
    {
      pools: [pool('a', { capacity: 'many' }), pool('b', { capacity: -1 })],
      why: 'No MachinePool is suitable: 2 without machineclass-sample',
    },
    {
      pools: [{ metadata: { name: 'new', uid: 'new', ...FROM_SERVER } }],
      why: 'No MachinePool is suitable: 1 not ready',
    },
    {
      pools: [
        pool('a', { capacity: 9, ready: 'False', taints: [gpu] }),
        pool('b', { capacity: 9, ready: 'Unknown' }),
        pool('c', { capacity: 9, taints: [gpu] }),
        pool('d', { capacity: 9 }),
        pool('e', { labels: { zone: 'z1' } }),
        pool('f', { capacity: 1, labels: { zone: 'z1' } }),
      ],
      why:
        'No MachinePool is suitable: 2 not ready, 1 tainted, 1 without the labels of machinePoolSelector, ' +
        '1 without machineclass-sample, 1 full',
    },
  ])('$why', ({ pools, why }) => {
    const taken = new PlacesTaken();
    taken.seen(machine('there', { machinePoolRef: { name: 'f' } }));

    const placement = place(machine('m', { machinePoolSelector: { zone: 'z1' } }), pools.map(inZone), taken);

    expect(placement).toEqual({ why });
  });
});

/** Pools of this table are in the zone unless they have labels, or are there for having none. */
function inZone(one: IronCoreMachinePool): IronCoreMachinePool {
  const { labels = {}, name } = one.metadata;
  if (name === 'd' || Object.keys(labels).length > 0) return one;
  return { ...one, metadata: { ...one.metadata, labels: { zone: 'z1' } } };
}

const CLASSES = [CLASS, 'other'];
const effects = fc.constantFrom('NoSchedule', 'NoExecute');
const key = fc.constantFrom('k1', 'k2');
const value = fc.constantFrom('v1', 'v2');
const labels: fc.Arbitrary<Record<string, string>> = fc.dictionary(key, value, { maxKeys: 2 });
const pools = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    ready: fc.constantFrom('True', 'True', 'True', 'False', 'Unknown'),
    taints: fc.array(fc.record({ key, value, effect: effects }), { maxLength: 2 }),
    labels,
    capacity: fc.dictionary(fc.constantFrom(...CLASSES), fc.nat(4)),
  }),
  { selector: ({ name }) => name, maxLength: 4 },
);
const machines = fc.array(
  fc.record({
    machineClass: fc.constantFrom(...CLASSES),
    selector: fc.oneof(fc.constant<Record<string, string>>({}), labels),
    tolerations: fc.array(
      fc.oneof(
        fc.record({ key, value }),
        fc.record({ key, operator: fc.constant('Exists'), effect: effects }),
        fc.record({ operator: fc.constant('Exists') }),
      ),
      { maxLength: 2 },
    ),
  }),
  { minLength: 1, maxLength: 8 },
);
type Random<T> = T extends fc.Arbitrary<(infer U)[]> ? U : never;

const poolOf = (one: Random<typeof pools>): IronCoreMachinePool => ({
  metadata: { name: one.name, uid: one.name, labels: one.labels, ...FROM_SERVER },
  spec: { taints: one.taints },
  status: {
    conditions: [{ type: 'Ready', status: one.ready, reason: '', message: '' }],
    capacity: Object.fromEntries(Object.entries(one.capacity).map(([name, count]) => [`class/machine.${name}`, count])),
  },
});
const machineOf = (one: Random<typeof machines>, index: number): IronCoreMachine =>
  machine(`m-${index}`, {
    machineClassRef: { name: one.machineClass },
    machinePoolSelector: one.selector,
    tolerations: one.tolerations,
  });

/** The rules as they are told: one list of pools, from which those fall out that do not do. */
function asTold(
  one: Random<typeof machines>,
  from: Random<typeof pools>[],
  placed: (string | undefined)[][],
): string | undefined {
  const room = ({ name, capacity }: Random<typeof pools>): number =>
    (capacity[one.machineClass] ?? 0) -
    placed.filter(([where, machineClass]) => where === name && machineClass === one.machineClass).length;
  const puts = (t: Toleration, { key: k, value: v, effect }: Random<typeof pools>['taints'][number]): boolean =>
    (t.key === undefined || t.key === k) &&
    (t.effect === undefined || t.effect === effect) &&
    (t.operator === 'Exists' || t.value === v);
  return from
    .filter(({ ready }) => ready === 'True')
    .filter(({ taints }) => !taints.some((taint) => !one.tolerations.some((t) => puts(t, taint))))
    .filter((p) => Object.keys(one.selector).every((k) => p.labels[k] === one.selector[k]))
    .filter((p) => room(p) > 0)
    .toSorted((a, b) => room(b) - room(a) || a.name.localeCompare(b.name))[0]?.name;
}

describe('whatever pools and Machines there are', () => {
  // promise: machines-ironcore/machine-goes-rules-say
  // promise: ironcore/placing-machines/taints-selectors-equal-rules
  test('each goes where the rules say, none above a capacity, whatever the order of the pools', () => {
    fc.assert(
      fc.property(pools, machines, (somePools, someMachines) => {
        const taken = new PlacesTaken();
        const told: (string | undefined)[][] = [];
        const made = somePools.map(poolOf);
        const placed = someMachines.map((one, index) => {
          told.push([asTold(one, somePools, told), one.machineClass]);
          const wanted = machineOf(one, index);
          const [where, again] = [made, made.toReversed()].map((ordered) => {
            const placement = place(wanted, ordered, taken);
            return 'pool' in placement ? placement.pool : undefined;
          });
          if (where !== undefined) taken.take(wanted, where);
          return where === again ? [where, one.machineClass] : [];
        });

        expect(placed).toEqual(told);
        const overfull = somePools.flatMap(({ name, capacity }) =>
          CLASSES.filter((machineClass) => taken.in(name, machineClass) > (capacity[machineClass] ?? 0)),
        );
        expect(overfull).toEqual([]);
      }),
      { numRuns: 10_000 },
    );
  });
});
