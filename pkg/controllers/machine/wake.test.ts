import { describe, expect, test } from '@jest/globals';

import { machine, machineClass, machineDeployment, machineSet, node, secret } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { keyOf, type KubeObject } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { ChangeHandler, Informer } from '../../kube/cache/lister.ts';
import { Store } from '../../kube/cache/store.ts';
import type { NodeLabelPolicy } from '../../apis/machine/v1alpha1/node-label-policy.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { CLASS_INDEX, classIndex } from '../../operator/indexes/class-index.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../operator/indexes/owner-index.ts';
import { MACHINE_CLASS_INDEXES } from '../../operator/indexes/secret-references.ts';
import { describeStage } from '../machine-facts/deletion-stage.ts';
import type { MachineController } from './controller.ts';
import { wakeMachines, wakeMachinesByPolicy, wakeMachinesOfClasses, wakeMachinesOfOrphans } from './wake.ts';

/** A cache that a test fills. */
class Filled<T extends KubeObject>
  extends Store<T>
  implements Pick<Informer<T>, 'onChange' | 'onDelivered' | 'hasSynced'>
{
  readonly #handlers: ChangeHandler<T>[] = [];
  readonly #ofDeliveries: ChangeHandler<T>[] = [];
  readonly hasSynced = true;

  onChange(handler: ChangeHandler<T>): void {
    this.#handlers.push(handler);
  }

  onDelivered(handler: ChangeHandler<T>): void {
    this.#ofDeliveries.push(handler);
  }

  /** The watch delivers it, or else a list shows it. */
  see(object: T, { isDelivered = true } = {}): void {
    if (isDelivered) for (const tell of this.#ofDeliveries) tell(this.get(keyOf(object)), object);
    for (const { old, current } of this.put(object)) for (const tell of this.#handlers) tell(old, current);
  }

  /** The watch delivers it, and what is shown is newer. */
  deliver(old: T, current: T): void {
    for (const tell of this.#ofDeliveries) tell(old, current);
  }

  lose(key: string, { isDelivered = true } = {}): void {
    if (isDelivered) for (const tell of this.#ofDeliveries) tell(this.get(key), undefined);
    for (const { old, current } of this.remove(key)) for (const tell of this.#handlers) tell(old, current);
  }
}

function start(): {
  machines: Filled<Machine>;
  nodes: Filled<Node>;
  woken: string[];
  forgotten: string[];
  gone: string[];
  /** Nodes that are gone, or not being deleted. */
  settled: Set<string>;
  /** Versions of Nodes that were told to the controller. */
  seen: string[];
  /** Changes of Nodes that the watch has delivered, and that were told. */
  delivered: string[];
  /** A call or drain of a Machine ends. */
  end: (key: string) => void;
} {
  const machines = new Filled<Machine>(MACHINE_INDEXES);
  const nodes = new Filled<Node>();
  const woken: string[] = [];
  const forgotten: string[] = [];
  const gone: string[] = [];
  const settled = new Set<string>();
  const seen: string[] = [];
  const delivered: string[] = [];
  const onEnd: ((key: string) => void)[] = [];
  wakeMachines({
    isOurs: () => true,
    // What a Filled lacks of an Informer nobody asks for here.
    machines: machines as unknown as Informer<Machine>,
    nodes: [nodes as unknown as Informer<Node>],
    queue: { add: (key, priority) => void woken.push(`${key} ${priority ?? 'normal'}`), addAfter: () => undefined },
    activities: {
      forgetAll: (key: string, except?: string) => void forgotten.push(`${key} ${except ?? ''}`),
      onEnd: (handler: (key: string) => void) => void onEnd.push(handler),
    },
    controller: {
      forget: (one: Machine) => void forgotten.push(one.metadata.uid),
      nodeDeleted: (old: Node, current: Node | undefined, of: readonly Machine[]) =>
        void gone.push(
          `${old.metadata.name} of ${of.map(({ metadata: { name } }) => name).join()} is ${current === undefined ? 'gone' : 'going'}`,
        ),
      nodeSeen: (_old: Node | undefined, current: Node, of: () => readonly Machine[]) =>
        void seen.push(
          `${current.metadata.name} of ${of()
            .map(({ metadata: { name } }) => name)
            .join()}`,
        ),
      nodeDelivered: (old: Node, current: Node, of: () => readonly Machine[]) =>
        void delivered.push(`${of().length}: ${old.metadata.resourceVersion} ${current.metadata.resourceVersion}`),
      forgetNode: ({ metadata: { uid } }: Node) => void settled.add(uid),
    } as unknown as MachineController,
  });
  return {
    machines,
    nodes,
    woken,
    forgotten,
    gone,
    settled,
    seen,
    delivered,
    end: (key) => onEnd.forEach((handler) => handler(key)),
  };
}

describe('a Machine', () => {
  const begun = (m: Machine): void => {
    Object.assign(m.metadata, { resourceVersion: '3', deletionTimestamp: 'x' });
    m.status = { currentStatus: { phase: 'Terminating' }, lastOperation: { description: describeStage('drain') } };
  };

  test('is looked at when it changes, first of all when it is deleted, and most of all when that has begun', () => {
    const { machines, woken } = start();
    machines.see(machine());
    machines.see(machine((m) => Object.assign(m.metadata, { resourceVersion: '2', deletionTimestamp: 'x' })));
    machines.see(machine(begun));

    expect(woken).toEqual(['default/m-1 normal', 'default/m-1 high', 'default/m-1 highest']);
  });

  test('is looked at as urgently when one of its calls has ended', () => {
    const { machines, woken, end } = start();
    end('default/m-1');
    machines.see(machine(begun));
    end('default/m-1');

    expect(woken).toEqual(['default/m-1 normal', 'default/m-1 highest', 'default/m-1 highest']);
  });

  test('is forgotten when it is gone, and when another takes its name', () => {
    const { machines, woken, forgotten } = start();
    machines.see(machine());
    machines.lose('default/m-1');
    machines.see(machine((m) => Object.assign(m.metadata, { uid: 'second' })));

    expect(forgotten).toEqual(['uid-of-machine-m-1', 'default/m-1 ']);
    expect(woken).toHaveLength(2);
  });
});

describe('the Node of a Machine', () => {
  const appear = (change: (n: ReturnType<typeof node>) => void): string[] => {
    const { machines, nodes, woken } = start();
    machines.see(machine());
    woken.length = 0;
    nodes.see(node(change));
    return woken;
  };

  test.each([
    { what: 'its name', change: (n: ReturnType<typeof node>) => (n.spec = {}) },
    {
      what: 'its provider id',
      change: (n: ReturnType<typeof node>) => (n.metadata.name = 'other'),
    },
    {
      what: 'its machine-name label',
      change: (n: ReturnType<typeof node>) => {
        n.metadata.name = 'other';
        n.spec = {};
        n.metadata.labels['node.gardener.cloud/machine-name'] = 'm-1';
      },
    },
  ])('wakes it when it appears, found by $what', ({ change }) => {
    expect(appear(change)).toEqual(['default/m-1 normal']);
  });

  test('of nobody wakes nobody', () => {
    const woken = appear((n) => {
      n.metadata.name = 'other';
      n.spec = { providerID: 'sim:///other' };
    });

    expect(woken).toEqual([]);
  });

  const heartbeat = (n: ReturnType<typeof node>): void => {
    const [ready] = n.status.conditions;
    if (ready !== undefined) ready.lastHeartbeatTime = '2026-01-01T00:05:00Z';
  };
  test.each([
    { what: 'a heartbeat', change: heartbeat, wakes: 0 },
    { what: 'an image', change: (n: ReturnType<typeof node>) => void (n.status.images = []), wakes: 0 },
    { what: 'a condition', change: (n: ReturnType<typeof node>) => void n.status.conditions.pop(), wakes: 1 },
    { what: 'a label', change: (n: ReturnType<typeof node>) => void (n.metadata.labels['a'] = 'b'), wakes: 1 },
    {
      what: 'a taint',
      change: (n: ReturnType<typeof node>) => void (n.spec.taints = [{ key: 'a', effect: 'NoSchedule' }]),
      wakes: 1,
    },
    { what: 'a cordon', change: (n: ReturnType<typeof node>) => void (n.spec.unschedulable = true), wakes: 1 },
    {
      what: 'its deletion',
      change: (n: ReturnType<typeof node>) => void (n.metadata.deletionTimestamp = 'x'),
      wakes: 1,
    },
  ])('wakes it $wakes times for $what', ({ change, wakes }) => {
    const { machines, nodes, woken } = start();
    machines.see(machine());
    nodes.see(node());
    woken.length = 0;
    nodes.see(
      node((n) => {
        n.metadata.resourceVersion = '2';
        change(n);
      }),
    );

    // What is delivered is told twice, which the queue makes one.
    expect(new Set(woken).size).toBe(wakes);
  });

  test('wakes it when it is gone', () => {
    const { machines, nodes, woken, gone } = start();
    machines.see(machine());
    nodes.see(node());
    woken.length = 0;
    nodes.lose('m-1');

    expect(new Set(woken)).toEqual(new Set(['default/m-1 normal']));
    expect(gone).toEqual(['m-1 of m-1 is gone']);
  });

  const version = (resourceVersion: string, deletionTimestamp?: string): Node =>
    node((n) => void Object.assign(n.metadata, { resourceVersion, ...(deletionTimestamp && { deletionTimestamp }) }));

  test.each([
    { how: 'delivered', isDelivered: true, told: ['m-1 of m-1 is going', 'm-1 of m-1 is gone'] },
    { how: 'listed, which may have passed over versions', isDelivered: false, told: [] },
  ])('is told to be deleted when that is $how', ({ isDelivered, told }) => {
    const { machines, nodes, gone } = start();
    machines.see(machine());
    nodes.see(version('1'));
    nodes.see(version('2'));
    nodes.see(version('3', 'x'), { isDelivered });
    nodes.see(version('4', 'x'), { isDelivered });
    nodes.lose('m-1', { isDelivered });

    expect(gone).toEqual(told);
  });

  test('wakes it when its deletion is delivered, also if that was shown before by a write of our own', () => {
    const { machines, nodes, woken } = start();
    machines.see(machine());
    nodes.see(version('3'));
    nodes.see(version('5', 'x'), { isDelivered: false });
    woken.length = 0;

    nodes.deliver(version('3'), version('4', 'x'));

    expect(woken).toEqual(['default/m-1 normal']);
  });

  test('is told of to the controller whenever a version is delivered or shown, and once it is gone no more', () => {
    const { machines, nodes, seen, delivered } = start();
    machines.see(machine());
    nodes.see(version('3'), { isDelivered: false });
    nodes.deliver(version('3'), version('4'));
    nodes.lose('m-1');

    expect(seen).toEqual(['m-1 of m-1', 'm-1 of m-1']);
    expect(delivered).toEqual(['1: 3 4']);
  });

  test('is settled when it is gone, or not deleted any more because its cluster was set back', () => {
    const { nodes, settled } = start();
    const wereSettledBy = (change: () => void): boolean => {
      settled.clear();
      change();
      return settled.size > 0;
    };
    nodes.see(version('3'));

    expect(wereSettledBy(() => nodes.see(version('4', 'x')))).toBe(false);
    expect(wereSettledBy(() => nodes.see(version('5', 'x')))).toBe(false);
    expect(wereSettledBy(() => nodes.see(version('2'), { isDelivered: false }))).toBe(true);
    nodes.see(version('7', 'y'));
    expect(wereSettledBy(() => nodes.lose('m-1', { isDelivered: false }))).toBe(true);
  });
});

describe('the Machines of a class', () => {
  test('are looked at when it and its Secret change, not when its labels do, whoever looks after those', () => {
    const machines = new Filled<Machine>({ ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex });
    const classes = new Filled<MachineClass>(MACHINE_CLASS_INDEXES);
    const secrets = new Filled<KubeObject>();
    const labelPolicies = new Filled<NodeLabelPolicy>();
    const woken: string[] = [];
    // What a Filled lacks of an Informer nobody asks for here.
    const caches = { machines, classes, secrets, labelPolicies } as unknown as Parameters<
      typeof wakeMachinesOfClasses
    >[0];
    wakeMachinesOfClasses(caches, { add: (key) => void woken.push(key), addAfter: () => undefined });
    machines.see(machine());
    const wokenBy = (change: () => void): number => {
      woken.length = 0;
      change();
      return woken.length;
    };

    const changed = (resourceVersion: string, change: object): MachineClass =>
      machineClass((c) =>
        Object.assign(c, change, { metadata: { ...c.metadata, labels: { change: resourceVersion }, resourceVersion } }),
      );

    expect(wokenBy(() => classes.see(machineClass()))).toBe(1);
    expect(wokenBy(() => classes.see(changed('11', {})))).toBe(0);
    expect(wokenBy(() => classes.see(changed('12', { providerSpec: { size: 'other' } })))).toBe(1);
    const requested = changed('13', { providerSpec: { size: 'other' } });
    requested.metadata.annotations = { 'machine.sapcloud.io/retry': 'now' };
    expect(wokenBy(() => classes.see(requested))).toBe(1);
    expect(wokenBy(() => secrets.see(secret()))).toBe(1);
    const started = (): void => secrets.see(secret((s) => void (s.metadata.name = 'data')));
    expect(wokenBy(() => classes.see(changed('14', { providerSpec: { bootstrap: { dataSecretName: 'data' } } })))).toBe(
      1,
    );
    expect(wokenBy(started)).toBe(1);
    const policy = (resourceVersion: string, key: string): NodeLabelPolicy => ({
      metadata: { ...machineClass().metadata, name: 'policy-1', resourceVersion },
      spec: { allowed: [{ key }] },
    });
    expect(wokenBy(() => labelPolicies.see(policy('1', 'a')))).toBe(1);
    expect(wokenBy(() => labelPolicies.see(policy('2', 'a')))).toBe(0);
    expect(wokenBy(() => labelPolicies.see(policy('3', 'b')))).toBe(1);
  });
});

describe('the deletion policy of a MachineDeployment', () => {
  const owned = (uid: string): { ownerReferences: NonNullable<Machine['metadata']['ownerReferences']> } => ({
    ownerReferences: [
      {
        apiVersion: 'machine.sapcloud.io/v1alpha1',
        kind: uid.startsWith('set') ? 'MachineSet' : 'MachineDeployment',
        name: uid,
        uid,
        controller: true,
      },
    ],
  });
  const pool = (resourceVersion: string, policy?: string): ReturnType<typeof machineDeployment> =>
    machineDeployment((d) => {
      Object.assign(d.metadata, { name: 'pool', uid: 'pool', resourceVersion });
      if (policy !== undefined) d.metadata.annotations = { 'machine.sapcloud.io/deletion-policy': policy };
    });

  test('wakes its machines when it changes, those that are deleted first, and nothing else does', () => {
    const machines = new Filled<Machine>(MACHINE_INDEXES);
    const machineSets = new Filled<MachineSet>();
    const machineDeployments = new Filled<MachineDeployment>();
    const woken: string[] = [];
    const caches = { machines, machineSets, machineDeployments } as unknown as Parameters<
      typeof wakeMachinesByPolicy
    >[0];
    machineSets.see(
      machineSet((s) => void Object.assign(s.metadata, { name: 'set-1', uid: 'set-1', ...owned('pool') })),
    );
    machines.see(machine((m) => void Object.assign(m.metadata, { name: 'm-1', uid: '1', ...owned('set-1') })));
    machines.see(
      machine((m) => {
        const deletionTimestamp = '2026-01-01T00:00:00Z';
        Object.assign(m.metadata, { name: 'm-2', uid: '2', deletionTimestamp, ...owned('set-1') });
      }),
    );
    machines.see(machine((m) => void Object.assign(m.metadata, { name: 'm-3', uid: '3' })));
    wakeMachinesByPolicy(caches, {
      add: (key, priority) => void woken.push(`${key} ${priority}`),
      addAfter: () => undefined,
    });

    machineDeployments.see(pool('1'));
    expect(woken).toEqual([]);
    machineDeployments.see(pool('2', 'unsafe'));
    expect(woken).toEqual(['default/m-1 low', 'default/m-2 high']);
    machineDeployments.see(pool('3', 'unsafe'));
    machineDeployments.lose('default/pool');
    expect(woken).toHaveLength(2);
  });
});

test('a set that loses its MachineDeployment, or comes without one, wakes its machines once', () => {
  const indexes = { ...MACHINE_INDEXES, [CONTROLLER_INDEX]: controllerIndex };
  const [machines, machineSets] = [new Filled<Machine>(indexes), new Filled<MachineSet>()];
  const woken: string[] = [];
  const reference = (kind: string) => [
    { apiVersion: 'machine.sapcloud.io/v1alpha1', kind, name: 'x', uid: 'set-1', controller: true },
  ];
  const see = (resourceVersion: string, isOwned: boolean): void => {
    const ownerReferences = isOwned ? reference('MachineDeployment') : [];
    const name = 'set-1';
    machineSets.see(
      machineSet((s) => void Object.assign(s.metadata, { name, uid: name, resourceVersion, ownerReferences })),
    );
  };
  const ownerReferences = reference('MachineSet');
  machines.see(machine((m) => void Object.assign(m.metadata, { name: 'm-1', uid: '1', ownerReferences })));
  wakeMachinesOfOrphans({ machines, machineSets } as unknown as Parameters<typeof wakeMachinesOfOrphans>[0], {
    add: (key, priority) => void woken.push(`${key} ${priority}`),
    addAfter: () => undefined,
  });

  see('1', true);
  see('2', true);
  expect(woken).toEqual([]);
  see('3', false);
  expect(woken).toEqual(['default/m-1 low']);
  see('4', false);
  expect(woken).toHaveLength(1);
  machineSets.lose('default/set-1');
  see('5', false);
  expect(woken).toHaveLength(2);
});
