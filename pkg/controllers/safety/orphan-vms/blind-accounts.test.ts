import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, node } from '../../../../test/builders.ts';
import { FakeDriver } from '../../../../test/fakes/driver.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import { MACHINE_NAME_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { MACHINE_INDEXES } from '../../../operator/indexes/machine-indexes.ts';
import { silentLogger } from '../../../base/log/logger.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import { BlindAccounts, type Distrust, type Unlisted } from './blind-accounts.ts';
import type { Snapshot } from './evidence.ts';
import type { ClassList } from './survey.ts';

const GRACE_MS = 60_000;
const NONE: readonly Unlisted[] = [];

interface ClassOptions {
  readonly expected?: number;
  readonly secret?: string;
  readonly scope?: ClassList['scope'];
}

/** Machines m-0, m-1, … whose Nodes are ready, unless a test says otherwise; classes of one account, unless they name another Secret. */
class World {
  readonly nodes = new MemoryInformer<Node>([]);
  readonly events: string[] = [];
  readonly warnings: object[] = [];
  /** Accounts that were believed again. */
  readonly believed: unknown[] = [];
  hasTarget = true;
  /** Machines without a target cluster where others have one. */
  readonly alone = new Set<string>();
  readonly machines = new MemoryInformer<Machine>([], MACHINE_INDEXES);
  readonly accounts = new BlindAccounts({
    machines: this.machines,
    targets: {
      of: ({ metadata: { name } }) =>
        this.hasTarget && !this.alone.has(name) ? ({ nodes: this.nodes } as unknown as Target) : undefined,
      all: () => [],
    },
    recorder: { event: ({ object, reason }) => void this.events.push(`${object.metadata.name} ${reason}`) },
    log: {
      ...silentLogger,
      info: (fields) => void this.believed.push(fields['account']),
      warn: (fields) => void this.warnings.push(fields),
    },
    graceMs: GRACE_MS,
  });

  machine(i: number, ready: 'True' | 'Unknown' = 'True', providerID = `sim:///${i}`): Machine {
    const name = `m-${i}`;
    this.nodes.put(
      node((n) => {
        n.metadata.name = name;
        n.spec = { providerID };
        n.status.conditions = [{ type: 'Ready', status: ready }];
      }),
    );
    return machine((m) => {
      Object.assign(m.metadata, { name, uid: `uid-${i}`, labels: { node: name } });
      m.spec.providerID = `sim:///${i}`;
    });
  }

  class(
    name: string,
    machines: readonly Machine[],
    { expected = 60, secret = 'account', scope = 'class' }: ClassOptions = {},
  ): Unlisted {
    const oneClass = machineClass((c) => {
      c.metadata.name = name;
      c.secretRef = { name: secret, namespace: 'default' };
    });
    const list: ClassList = {
      key: `default/${name}`,
      machineClass: oneClass,
      driver: new FakeDriver(),
      secretData: {},
      scope,
      vms: [],
      foreign: [],
    };
    return { list, machines, expected };
  }

  /** How many accounts are not believed at all. */
  look(atMs: number, classes: readonly Unlisted[], unseen = NONE): number {
    return this.distrust(atMs, classes, unseen).filter((verdict) => verdict === 'blind').length;
  }

  distrust(atMs: number, classes: readonly Unlisted[], unseen = NONE): readonly Distrust[] {
    return [...this.accounts.judge(classes, sightAt(atMs), unseen).values()];
  }

  /** The same after GetMachineStatus was asked, which does not know the VMs of `gone`. */
  contradict(classes: readonly Unlisted[], gone: readonly string[], unseen = NONE): readonly Distrust[] {
    return [...this.accounts.contradict(classes, new Set(gone), unseen).values()];
  }

  /** The lists of a look show the VMs of those of the machines. */
  list(atMs: number, machines: readonly Machine[], shown = machines): void {
    this.accounts.noteListed(machines, new Set(shown.map(({ spec }) => spec.providerID ?? '')), sightAt(atMs));
  }

  /** Whether a VM without a Machine, which was seen first then, is none of those that the lists of the account omit. */
  isApart(firstMs: number): boolean {
    return firstMs <= this.accounts.apartMs('sim/default/account');
  }
}

function sightAt(atMs: number): Snapshot {
  return { atMs, wallMs: atMs, vms: 0, machines: 0 };
}

test('an account is blind while one look after the other does not show the VM of a ready Node, and believed when it does', () => {
  const world = new World();
  const classes = [world.class('a', [world.machine(0)])];

  expect(world.look(0, classes)).toBe(0);
  expect(world.look(GRACE_MS - 1, classes)).toBe(0);
  expect([world.look(GRACE_MS, classes), world.look(2 * GRACE_MS, classes)]).toEqual([1, 1]);
  expect(world.events).toEqual(['a ReadyNodesWithoutVM', 'a ReadyNodesWithoutVM']);
  expect(world.warnings).toEqual([{ account: 'sim/default/account', machines: 1, named: ['default/m-0'] }]);

  expect(world.believed).toEqual([]);
  expect(world.look(3 * GRACE_MS, [world.class('a', [])])).toBe(0);
  expect(world.believed).toEqual(['sim/default/account']);
  expect(world.look(4 * GRACE_MS, classes)).toBe(0);
  expect(world.warnings).toHaveLength(1);
});

test.each([
  { count: 4, expected: 12, blind: 1 },
  { count: 3, expected: 12, blind: 0 },
  { count: 6, expected: 60, blind: 0 },
  { count: 7, expected: 60, blind: 1 },
])('with $count of $expected VMs missing at once $blind accounts are blind at the first look', (row) => {
  const world = new World();
  const machines = Array.from({ length: row.count }, (_, i) => world.machine(i));

  expect(world.look(0, [world.class('a', machines, row)])).toBe(row.blind);
});

test('an account of few machines is doubted while one whose Node became ready again is missing for the first time', () => {
  const world = new World();
  const all = (ready: 'True' | 'Unknown') => {
    for (const i of [0, 1, 2]) world.nodes.remove(`m-${i}`);
    return [0, 1, 2].map((i) => world.machine(i, ready));
  };

  expect(world.distrust(0, [world.class('a', all('Unknown'), { expected: 3 })])).toEqual([]);
  expect(world.distrust(GRACE_MS, [world.class('a', all('True'), { expected: 3 })])).toEqual(['doubted']);
  expect(world.events).toEqual([]);
  expect(world.distrust(2 * GRACE_MS, [world.class('a', all('True'), { expected: 3 })])).toEqual(['blind']);
});

test.each([
  { count: 3, expected: 12, distrust: [] },
  { count: 4, expected: 12, distrust: ['blind'] },
  { count: 6, expected: 60, distrust: [] },
  { count: 7, expected: 60, distrust: ['blind'] },
])('without a target cluster, $count of $expected missing at once make the account $distrust', (row) => {
  const world = new World();
  world.hasTarget = false;
  const machines = Array.from({ length: row.count }, (_, i) => world.machine(i));

  expect(world.distrust(0, [world.class('a', machines, row)])).toEqual(row.distrust);
  expect(world.distrust(GRACE_MS, [world.class('a', machines, row)])).toEqual(row.distrust);
  expect(world.events).toEqual(row.distrust.flatMap(() => ['a ManyVMsMissing', 'a ManyVMsMissing']));
  expect(world.distrust(2 * GRACE_MS, [world.class('a', machines.slice(0, 1), row)])).toEqual([]);
});

test('the classes of an account count together, and for no other account', () => {
  const world = new World();
  const mine = [
    world.class('a', [world.machine(0), world.machine(1)], { expected: 6 }),
    world.class('b', [world.machine(2), world.machine(3)], { expected: 6 }),
  ];

  expect(world.look(0, mine)).toBe(1);
  const others = mine.map((one, i) => ({ ...world.class(`c-${i}`, one.machines, { expected: 6, secret: `s-${i}` }) }));
  expect(new World().look(0, others)).toBe(0);
});

test.each<{ what: string; make: (world: World) => Machine }>([
  { what: 'is not ready', make: (world) => world.machine(0, 'Unknown') },
  { what: 'shows another VM', make: (world) => world.machine(0, 'True', 'sim:///another') },
  {
    what: 'is that of another machine',
    make(world) {
      const one = world.machine(0);
      world.machines.put(machine((m) => void Object.assign(m.metadata, { name: 'other', uid: 'uid-of-other' })));
      for (const { metadata } of world.nodes.list()) metadata.labels = { [MACHINE_NAME_LABEL]: 'other' };
      return one;
    },
  },
  {
    what: 'does not exist',
    make(world) {
      const one = world.machine(0);
      world.nodes.remove('m-0');
      return one;
    },
  },
  {
    what: 'nobody watches',
    make(world) {
      world.hasTarget = false;
      return world.machine(0);
    },
  },
])('a machine whose Node $what says nothing', ({ make }) => {
  const world = new World();
  const classes = [world.class('a', [make(world)])];

  expect([world.look(0, classes), world.look(GRACE_MS, classes)]).toEqual([0, 0]);
  expect(world.accounts.size).toBe(0);
});

test('a Node that shows no VM is that of its machine', () => {
  const world = new World();
  const classes = [world.class('a', [world.machine(0, 'True', '')])];

  expect([world.look(0, classes), world.look(GRACE_MS, classes)]).toEqual([0, 1]);
});

test('an account stays blind while the class that showed it cannot be listed', () => {
  const world = new World();
  const seen = world.class('a', [world.machine(0)]);
  const other = world.class('b', []);
  world.look(0, [seen, other]);
  world.look(GRACE_MS, [seen, other]);
  const unseen = [seen];

  expect(world.look(2 * GRACE_MS, [other], unseen)).toBe(1);
  expect(world.look(3 * GRACE_MS, [], unseen)).toBe(1);
  expect(world.look(4 * GRACE_MS, [seen, other])).toBe(1);
  expect(world.look(5 * GRACE_MS, [other, world.class('a', [])])).toBe(0);
});

test('an account that one class makes doubted stays so while that class cannot be listed', () => {
  const world = new World();
  const seen = world.class('a', [world.machine(0)]);
  const other = world.class('b', []);
  const unseen = [seen];
  expect(world.distrust(0, [seen, other])).toEqual(['doubted']);

  expect(world.distrust(GRACE_MS, [other], unseen)).toEqual(['doubted']);
  expect(world.distrust(2 * GRACE_MS, [other], unseen)).toEqual(['doubted']);
  expect(world.events).toEqual([]);
  expect(world.distrust(3 * GRACE_MS, [seen, other])).toEqual(['blind']);
  expect(world.distrust(4 * GRACE_MS, [world.class('a', []), other])).toEqual([]);
});

test('an account is contradicted while GetMachineStatus does not say that a VM is gone which no list shows, whatever its Node says', () => {
  const world = new World();
  const other = world.class('b', []);
  const omitting = [world.class('a', [world.machine(0, 'Unknown'), world.machine(1, 'Unknown')]), other];
  const looks = (gone: readonly string[]): readonly (readonly Distrust[])[] => [
    world.distrust(0, omitting),
    world.contradict(omitting, gone),
  ];

  expect(looks(['uid-0'])).toEqual([[], ['contradicted']]);
  expect(looks(['uid-0', 'uid-1'])).toEqual([[], []]);
  expect(looks([])).toEqual([[], ['contradicted']]);
  expect(looks([])).toEqual([[], ['contradicted']]);
  expect([world.distrust(1, [world.class('a', []), other]), world.contradict([other], [])]).toEqual([[], []]);
  const named = ['default/m-0', 'default/m-1'];
  expect(world.warnings).toMatchObject([
    { machines: 1, named: ['default/m-1'] },
    { machines: 2, named },
  ]);
  expect(world.events).toEqual([]);
});

test('an account that a class has contradicted stays so while that cannot be listed', () => {
  const world = new World();
  const [omitting, other] = [world.class('a', [world.machine(0, 'Unknown')]), world.class('b', [])];
  world.distrust(0, [omitting, other]);
  expect(world.contradict([omitting, other], [])).toEqual(['contradicted']);

  expect(world.distrust(1, [other], [omitting])).toEqual(['contradicted']);
  expect(world.contradict([other], [], [omitting])).toEqual(['contradicted']);
  expect(world.distrust(2, [other, world.class('a', [])])).toEqual([]);
});

describe('a VM without a Machine that was proved while the lists showed all VMs which they omit now', () => {
  /** m-0 and m-1 are listed until GRACE_MS, and m-1 is not in the next look. */
  function start() {
    const world = new World();
    const [first, second] = [world.machine(0, 'Unknown'), world.machine(1, 'Unknown')] as const;
    for (const atMs of [0, GRACE_MS]) world.list(atMs, [first, second]);
    world.list(2 * GRACE_MS, [first, second], [first]);
    return { world, first, second, omitting: [world.class('a', [second])] };
  }

  test('is none of these; one that came later may be', () => {
    const { world, omitting } = start();
    world.distrust(2 * GRACE_MS, omitting);
    expect(world.contradict(omitting, [])).toEqual(['contradicted']);

    expect([0, 1, GRACE_MS, 2 * GRACE_MS].map((firstMs) => world.isApart(firstMs))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  test.each<{ what: string; look: (given: ReturnType<typeof start>) => void }>([
    {
      what: 'one of them was never listed',
      look({ world, second }) {
        const classes = [world.class('a', [second, world.machine(2, 'Unknown')])];
        world.distrust(2 * GRACE_MS, classes);
        world.contradict(classes, []);
      },
    },
    {
      what: 'the account is doubted, too',
      look({ world, first, second, omitting }) {
        const working = world.machine(3);
        const classes = [...omitting, world.class('b', [working])];
        world.list(2 * GRACE_MS, [first, second, working], [first, working]);
        world.distrust(2 * GRACE_MS, classes);
        world.contradict(classes, []);
      },
    },
    {
      what: 'its class cannot be listed any more and has one that never was',
      look({ world, second, omitting }) {
        const other = world.class('b', [], { scope: 'cluster' });
        const unseen = [world.class('a', [second, world.machine(2, 'Unknown')])];
        world.distrust(2 * GRACE_MS, [other, ...omitting]);
        world.contradict([other, ...omitting], []);
        world.distrust(3 * GRACE_MS, [other], unseen);
        world.contradict([other], [], unseen);
      },
    },
    {
      what: 'its Machine was not there for a while',
      look({ world, first, second, omitting }) {
        world.list(2 * GRACE_MS, [first]);
        world.list(2 * GRACE_MS, [first, second], [first]);
        world.distrust(2 * GRACE_MS, omitting);
        world.contradict(omitting, []);
      },
    },
  ])('may be one when $what', ({ look }) => {
    const given = start();

    look(given);

    expect(given.world.isApart(0)).toBe(false);
  });

  test('is none of these while their class cannot be listed, as long as they are there', () => {
    const { world, second, omitting } = start();
    const gone = world.machine(2, 'Unknown');
    const both = [world.class('a', [second, gone])];
    world.distrust(2 * GRACE_MS, both);
    world.contradict(both, []);
    expect(world.isApart(0)).toBe(false);

    expect(world.distrust(3 * GRACE_MS, [], omitting)).toEqual(['contradicted']);
    world.contradict([], [], omitting);

    expect(world.isApart(0)).toBe(true);
  });
});

test('an account is doubted if one class makes it so and another one contradicts it', () => {
  const world = new World();
  const classes = [world.class('a', [world.machine(0)]), world.class('b', [world.machine(1, 'Unknown')])];

  world.distrust(0, classes);
  expect(world.contradict(classes, ['uid-0'])).toEqual(['doubted']);
});

test.each<{
  what: string;
  scope?: 'class' | 'cluster';
  secret?: string;
  machines?: readonly number[];
  want: Distrust[];
}>([
  { what: 'lists of the whole cluster do not show', scope: 'cluster', want: ['contradicted'] },
  { what: 'lists of other classes alone do not show', scope: 'class', want: [] },
  {
    what: 'lists of the whole cluster with another Secret do not show',
    scope: 'cluster',
    secret: 'another',
    want: ['contradicted'],
  },
  { what: 'lists of the whole cluster do show', scope: 'cluster', machines: [], want: [] },
])('machines of a class that was never listed which $what make their account $want', (row) => {
  const world = new World();
  const seen = [world.class('a', [], row)];
  const unseen = [
    world.class(
      'b',
      (row.machines ?? [0]).map((i) => world.machine(i)),
    ),
  ];

  expect(world.distrust(0, seen, unseen)).toEqual([]);
  expect(world.contradict(seen, [], unseen)).toEqual(row.want);
  expect(world.distrust(1, seen, unseen)).toEqual(row.want);
});

test.each<{ what: string; unseen: (world: World) => Unlisted }>([
  {
    what: 'has none of the machines any more that made it so',
    unseen: (world) => world.class('a', [world.machine(1)]),
  },
  {
    what: 'is of another account by now',
    unseen: (world) => world.class('a', [world.machine(0)], { secret: 'another' }),
  },
])('an account is believed again when the class that cannot be listed $what', ({ unseen }) => {
  const world = new World();
  const other = world.class('b', []);
  const seen = [world.class('a', [world.machine(0)]), other];
  world.distrust(0, seen);
  expect(world.distrust(GRACE_MS, seen)).toEqual(['blind']);

  expect(world.distrust(2 * GRACE_MS, [other], [unseen(world)])).toEqual([]);
  expect(world.believed).toEqual(['sim/default/account']);
});

test('what was seen before an outage counts for nothing', () => {
  const world = new World();
  const classes = [world.class('a', [world.machine(0)])];
  world.look(0, classes);
  expect(world.accounts.size).toBe(1);

  world.accounts.dropBefore(1);

  expect(world.look(GRACE_MS, classes)).toBe(0);
});

test('machines with a ready Node and machines without a target cluster are too many by themselves, not together', () => {
  const world = new World();
  world.alone.add('m-2').add('m-3');
  const machines = [0, 1, 2, 3].map((i) => world.machine(i));

  expect(world.distrust(0, [world.class('a', machines, { expected: 12 })])).toEqual(['doubted']);
  world.alone.add('m-0').add('m-1');
  expect(world.distrust(1, [world.class('a', machines, { expected: 12 })])).toEqual(['blind']);
});

test('one class that lacks the VM of a ready Node makes its account doubted, whatever the others show', () => {
  const world = new World();
  const classes = [world.class('a', [world.machine(0)]), world.class('b', [])];

  expect(world.distrust(0, classes)).toEqual(['doubted']);
  world.look(GRACE_MS, classes);
  expect(world.events).toEqual(['a ReadyNodesWithoutVM']);
});

test('what the lists of all classes had to show counts together', () => {
  const world = new World();
  const five = [0, 1, 2, 3, 4].map((i) => world.machine(i));

  expect(world.look(0, [world.class('a', five, { expected: 59 }), world.class('b', [], { expected: 1 })])).toBe(0);
  expect(world.look(1, [world.class('a', five, { expected: 29 }), world.class('b', [], { expected: 1 })])).toBe(1);
});

test('an account is believed again when only a class cannot be listed that had shown all of its VMs', () => {
  const world = new World();
  const other = world.class('b', []);
  const seen = [world.class('a', [world.machine(0)]), other];
  world.look(0, seen);
  expect(world.look(GRACE_MS, seen)).toBe(1);

  expect(world.look(2 * GRACE_MS, [world.class('a', [])], [other])).toBe(0);
});

test.each([
  { what: 'with a target cluster', hasTarget: true },
  { what: 'without one', hasTarget: false },
])('each class that has made an account blind keeps it so while it cannot be listed, $what', ({ hasTarget }) => {
  const world = new World();
  world.hasTarget = hasTarget;
  const many = (name: string, from: number): Unlisted =>
    world.class(
      name,
      [0, 1, 2, 3].map((i) => world.machine(from + i)),
      { expected: 12 },
    );
  const [first, second] = [many('a', 0), many('b', 10)];
  expect(world.look(0, [first])).toBe(1);

  expect(world.look(1, [second], [first])).toBe(1);
  expect(world.look(2, [world.class('a', [])], [second])).toBe(1);
  expect(world.believed).toEqual([]);
});

test('of many machines the log names twenty', () => {
  const world = new World();
  const machines = Array.from({ length: 21 }, (_, i) => world.machine(i));

  world.look(0, [world.class('a', machines)]);

  expect(world.warnings).toMatchObject([
    { machines: 21, named: machines.slice(0, 20).map((m) => `default/${m.metadata.name}`) },
  ]);
});
