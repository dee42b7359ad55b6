import { describe, expect, test } from '@jest/globals';

import {
  machine,
  machineDeployment,
  machineSet,
  type BuiltMachine,
  type BuiltMachineDeployment,
  type BuiltMachineSet,
} from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../operator/indexes/owner-index.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { CREATION_LIMIT_REACHED } from '../replicas/creation-brake.ts';
import { wakeMachineSets } from './wake.ts';

const OWN = { pool: 'of-set-1' };

function deploymentOf(change?: (d: BuiltMachineDeployment) => void): BuiltMachineDeployment {
  return machineDeployment(change);
}

/** A set of the MachineDeployment that selects Machines with label `pool` of its name. */
function setOf(name: string, change?: (s: BuiltMachineSet) => void): BuiltMachineSet {
  return machineSet((s) => {
    Object.assign(s.metadata, { name, uid: `uid-of-${name}` });
    s.metadata.ownerReferences = [controllerReference(deploymentOf(), API_VERSION, 'MachineDeployment')];
    s.spec.selector = { matchLabels: { pool: `of-${name}` } };
    change?.(s);
  });
}

/** A Machine of set-1, as it is seen at `version`. */
function seen(version: string, change?: (m: BuiltMachine) => void): BuiltMachine {
  return machine((m) => {
    m.metadata.resourceVersion = version;
    m.metadata.labels = { ...OWN };
    m.metadata.ownerReferences = [controllerReference(setOf('set-1'), API_VERSION, 'MachineSet')];
    change?.(m);
  });
}

/** Caches with three sets of one MachineDeployment, of which the third wants no Machine, and one Machine of the first. */
class World {
  readonly deployments = new MemoryInformer<MachineDeployment>([deploymentOf()]);
  readonly sets: MemoryInformer<MachineSet>;
  readonly machines: MemoryInformer<Machine>;
  readonly #woken: string[] = [];

  constructor(first: Machine = seen('1')) {
    const sets = [setOf('set-1'), setOf('set-2'), setOf('set-3', (s) => void (s.spec.replicas = 0))];
    this.sets = new MemoryInformer<MachineSet>(sets, { [CONTROLLER_INDEX]: controllerIndex });
    this.machines = new MemoryInformer<Machine>([first]);
    wakeMachineSets(
      { machineSets: this.sets, machines: this.machines, machineDeployments: this.deployments },
      { add: (key, priority) => void this.#woken.push(`${key} ${priority ?? ''}`), addAfter: () => undefined },
    );
  }

  /** Which sets `change` wakes, and how urgently. */
  wokenBy(change: () => void): string[] {
    this.#woken.length = 0;
    change();
    return [...new Set(this.#woken)].toSorted();
  }
}

test('a Machine that is gone wakes its set, and the others of its MachineDeployment that want Machines: it has made room', () => {
  const world = new World();

  expect(world.wokenBy(() => world.machines.remove('default/m-1'))).toEqual([
    'default/set-1 normal',
    'default/set-2 normal',
  ]);
});

describe('of a Machine that changes', () => {
  test.each<{ what: string; change: (m: BuiltMachine) => void; before?: (m: BuiltMachine) => void; wakes: string[] }>([
    {
      what: 'the beginning of a preservation',
      change: (m) => void (m.status.currentStatus.preserveExpiryTime = '2026-01-03T00:00:00Z'),
      wakes: ['default/set-1 normal'],
    },
    {
      what: 'the end of a preservation',
      before: (m) => void (m.status.currentStatus.preserveExpiryTime = '2026-01-03T00:00:00Z'),
      change: () => undefined,
      wakes: ['default/set-1 normal'],
    },
    {
      what: 'the phase',
      change: (m) => void (m.status.currentStatus.phase = 'Failed'),
      wakes: ['default/set-1 normal'],
    },
    { what: 'the VM', change: (m) => void (m.spec.providerID = 'sim:///other'), wakes: ['default/set-1 normal'] },
    {
      what: 'the settings',
      change: (m) => void (m.metadata.generation = 2),
      wakes: ['default/set-1 normal'],
    },
    {
      what: 'an annotation',
      change: (m) => void (m.metadata.annotations['machinepriority.machine.sapcloud.io'] = '1'),
      wakes: ['default/set-1 normal'],
    },
    {
      what: 'its deletion',
      change: (m) => void (m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'),
      wakes: ['default/set-1 high'],
    },
    {
      what: 'an operation that failed',
      change: (m) => void Object.assign(m.status.lastOperation, { state: 'Failed', description: 'no quota' }),
      wakes: ['default/set-1 normal'],
    },
    {
      what: 'the words of one that goes on',
      change: (m) => void Object.assign(m.status.lastOperation, { state: 'Processing', description: 'drains' }),
      wakes: [],
    },
    {
      what: 'a heartbeat of its Node',
      change: (m) => void (m.status.conditions = [{ type: 'Ready', status: 'True' }]),
      wakes: [],
    },
    {
      what: 'another set as its owner',
      change: (m) => {
        m.metadata.ownerReferences = [controllerReference(setOf('set-2'), API_VERSION, 'MachineSet')];
      },
      wakes: ['default/set-1 normal', 'default/set-2 normal'],
    },
    {
      what: 'the loss of its owner, to the set that it had and that could adopt it,',
      change: (m) => void (m.metadata.ownerReferences = []),
      wakes: ['default/set-1 normal'],
    },
    {
      what: 'a label that another set selects, while nobody controls it,',
      before: (m) => void (m.metadata.ownerReferences = []),
      change: (m) => Object.assign(m.metadata, { ownerReferences: [], labels: { pool: 'of-set-2' } }),
      wakes: ['default/set-2 normal'],
    },
    {
      what: 'the phase, while nobody controls it,',
      before: (m) => void (m.metadata.ownerReferences = []),
      change: (m) => {
        m.metadata.ownerReferences = [];
        m.status.currentStatus.phase = 'Failed';
      },
      wakes: [],
    },
    {
      what: 'a set of the same name with another UID as its owner',
      before: (m) => void (m.metadata.ownerReferences = []),
      change: (m) => {
        const other = setOf('set-2', (s) => void (s.metadata.uid = 'uid of one before'));
        m.metadata.ownerReferences = [controllerReference(other, API_VERSION, 'MachineSet')];
      },
      wakes: [],
    },
  ])('$what wakes $wakes', ({ before, change, wakes }) => {
    const world = new World(seen('1', before));

    expect(world.wokenBy(() => world.machines.put(seen('2', change)))).toEqual(wakes);
  });
});

describe('a MachineDeployment that creates again wakes its sets', () => {
  const stopped = (d: BuiltMachineDeployment): void => {
    d.status.conditions = [{ type: 'Frozen', status: 'True', reason: CREATION_LIMIT_REACHED }];
  };
  const at = (version: string, change?: (d: BuiltMachineDeployment) => void): BuiltMachineDeployment =>
    deploymentOf((d) => {
      d.metadata.resourceVersion = version;
      change?.(d);
    });
  const all = ['default/set-1 normal', 'default/set-2 normal', 'default/set-3 normal'];

  test.each([
    { what: 'its stop ends', before: at('2', stopped), after: at('3'), wakes: all },
    { what: 'its stop goes on', before: at('2', stopped), after: at('3', stopped), wakes: [] },
    { what: 'it is stopped', before: at('2'), after: at('3', stopped), wakes: [] },
    { what: 'something else changes', before: at('2'), after: at('3'), wakes: [] },
  ])('when $what: $wakes', ({ before, after, wakes }) => {
    const world = new World();
    world.deployments.put(before);

    expect(world.wokenBy(() => world.deployments.put(after))).toEqual(wakes);
  });

  test('and none when it is gone', () => {
    const world = new World();
    world.deployments.put(at('2', stopped));

    expect(world.wokenBy(() => world.deployments.remove('default/deployment-1'))).toEqual([]);
  });
});

test('a set that changes is looked at, one that is being deleted first of all', () => {
  const world = new World();
  const going = setOf('set-2', (s) => {
    Object.assign(s.metadata, { resourceVersion: '2', deletionTimestamp: '2026-01-01T00:00:00Z' });
  });

  expect(world.wokenBy(() => world.sets.put(setOf('set-1', (s) => void (s.metadata.resourceVersion = '2'))))).toEqual([
    'default/set-1 normal',
  ]);
  expect(world.wokenBy(() => world.sets.put(going))).toEqual(['default/set-2 high']);
  expect(world.wokenBy(() => world.sets.remove('default/set-1'))).toEqual(['default/set-1 normal']);
});
