import { describe, expect, test } from '@jest/globals';

import {
  machine,
  machineDeployment,
  machineSet,
  type BuiltMachine,
  type BuiltMachineSet,
} from '../../../../test/builders.ts';
import { FREEZE_LABEL, UNFREEZE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject, OwnerReference } from '../../../apis/meta.ts';
import type { ChangeHandler, Informer } from '../../../kube/cache/lister.ts';
import { wakeOvershoot } from './wake.ts';

/** Tells of changes as a cache does; nobody reads it here. */
class Told<T extends KubeObject> {
  readonly #handlers: ChangeHandler<T>[] = [];
  readonly informer = { onChange: (handler: ChangeHandler<T>) => void this.#handlers.push(handler) } as Informer<T>;

  tell(old: T | undefined, current: T | undefined): void {
    for (const handler of this.#handlers) handler(old, current);
  }
}

/** How often the loop was woken since its start. */
function watching() {
  const woken = { now: 0, soon: 0 };
  const released: string[] = [];
  const [machines, sets, deployments] = [
    new Told<BuiltMachine>(),
    new Told<BuiltMachineSet>(),
    new Told<ReturnType<typeof machineDeployment>>(),
  ];
  wakeOvershoot(
    { machines: machines.informer, machineSets: sets.informer, machineDeployments: deployments.informer },
    { add: () => void (woken.now += 1), addAfter: () => void (woken.soon += 1) },
    (uid) => void released.push(uid),
  );
  expect(woken).toEqual({ now: 1, soon: 0 });
  woken.now = 0;
  return { machines, sets, deployments, woken, released };
}

const owner = (uid: string): OwnerReference[] => [
  { apiVersion: 'machine.sapcloud.io/v1alpha1', kind: 'MachineSet', name: uid, uid, controller: true },
];

describe('the count is made anew', () => {
  test('soon when a Machine comes and goes', () => {
    const { machines, woken } = watching();
    machines.tell(undefined, machine());
    machines.tell(machine(), undefined);

    expect(woken).toEqual({ now: 0, soon: 2 });
  });

  test.each<{ what: string; change: (m: BuiltMachine) => void; soon: number }>([
    { what: 'is adopted', change: (m) => (m.metadata.ownerReferences = owner('set-1')), soon: 1 },
    { what: 'gets another label', change: (m) => (m.metadata.labels['pool'] = 'b'), soon: 1 },
    { what: 'only changes its status', change: (m) => (m.status.currentStatus.phase = 'Unknown'), soon: 0 },
  ])('$soon times when a Machine $what', ({ change, soon }) => {
    const { machines, woken } = watching();
    machines.tell(machine(), machine(change));

    expect(woken).toEqual({ now: 0, soon });
  });

  test.each<{ what: string; change: (s: BuiltMachineSet) => void; want: object }>([
    { what: 'its size changes', change: (s) => (s.metadata.generation = 2), want: { now: 1, soon: 0 } },
    { what: 'it gets an owner', change: (s) => (s.metadata.ownerReferences = owner('d')), want: { now: 1, soon: 0 } },
    {
      what: 'somebody takes or puts a mark',
      change: (s) => (s.metadata.labels[FREEZE_LABEL] = 'True'),
      want: { now: 0, soon: 1 },
    },
    { what: 'only its status changes', change: (s) => (s.status.replicas = 7), want: { now: 0, soon: 0 } },
  ])('of a set when $what: $want', ({ change, want }) => {
    const { sets, woken } = watching();
    const before = machineSet((s) => (s.metadata.generation = 1));
    const after = machineSet((s) => {
      s.metadata.generation = 1;
      change(s);
    });
    sets.tell(before, after);

    expect(woken).toEqual(want);
  });

  test('when a MachineDeployment changes its size, or loses a mark', () => {
    const { deployments, woken } = watching();
    const at = (generation: number, freeze: string) =>
      machineDeployment((d) => {
        d.metadata.generation = generation;
        d.metadata.labels[FREEZE_LABEL] = freeze;
      });
    deployments.tell(at(1, 'True'), at(2, 'True'));
    deployments.tell(at(2, 'True'), at(2, ''));

    expect(woken).toEqual({ now: 1, soon: 1 });
  });
});

test('a release is told of from when it is asked for until its annotation is taken away', () => {
  const { sets, deployments, released } = watching();
  const asked = machineSet((s) => (s.metadata.annotations[UNFREEZE_ANNOTATION] = ''));
  sets.tell(undefined, machineSet());
  expect(released).toEqual([]);

  sets.tell(machineSet(), asked);
  sets.tell(asked, machineSet());
  expect(released).toEqual([asked.metadata.uid, asked.metadata.uid]);

  deployments.tell(
    undefined,
    machineDeployment((d) => (d.metadata.annotations[UNFREEZE_ANNOTATION] = '')),
  );
  expect(released).toContain(machineDeployment().metadata.uid);
});
