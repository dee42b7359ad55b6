import { describe, expect, test } from '@jest/globals';

import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { Store } from '../../kube/cache/store.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../operator/indexes/owner-index.ts';
import { machine, machineDeployment, machineSet } from '../../../test/builders.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { ReplacementBudget } from './replacement-budget.ts';

const apiVersion = 'machine.sapcloud.io/v1alpha1';
const clock = new FakeClock();
const BY_CONTROLLER = { [CONTROLLER_INDEX]: controllerIndex };

function budgetOf(annotation?: string): { budget: ReplacementBudget; add: (name: string, set: string) => Machine } {
  const machines = new Store<Machine>(BY_CONTROLLER);
  const sets = new Store<MachineSet>(BY_CONTROLLER);
  const deployments = new Store<MachineDeployment>();
  const deployment = machineDeployment((d) => {
    d.spec.replicas = 10;
    if (annotation !== undefined) d.metadata.annotations['machine.sapcloud.io/max-replacements'] = annotation;
  });
  deployments.put(deployment);
  for (const name of ['old', 'new']) {
    const owner = {
      apiVersion,
      kind: 'MachineDeployment',
      name: 'deployment-1',
      uid: deployment.metadata.uid,
      controller: true,
    };
    sets.put(machineSet((s) => Object.assign(s.metadata, { name, ownerReferences: [owner] })));
  }
  const add = (name: string, set: string): Machine => {
    const owner = { apiVersion, kind: 'MachineSet', name: set, uid: `uid-of-machineset-${set}`, controller: true };
    const one = machine((m) => Object.assign(m.metadata, { name, ownerReferences: [owner] }));
    one.status.currentStatus.phase = 'Unknown';
    machines.put(one);
    return one;
  };
  return { budget: new ReplacementBudget({ machines, owners: { sets, deployments }, clock }), add };
}

describe('replacements of a MachineDeployment', () => {
  test('are granted one at a time, over all its sets', () => {
    const { budget, add } = budgetOf();
    const [a, b] = [add('a', 'old'), add('b', 'new')];

    const grant = budget.tryAcquire(a);

    expect(grant).toBeDefined();
    expect(budget.tryAcquire(b)).toBeUndefined();
    grant?.[Symbol.dispose]();
    expect(budget.tryAcquire(b)).toBeDefined();
  });

  test('are granted as often at once as its annotation says', () => {
    const { budget, add } = budgetOf('20%');
    const machines = ['a', 'b', 'c'].map((name) => add(name, 'old'));

    expect(machines.map((one) => budget.tryAcquire(one) !== undefined)).toEqual([true, true, false]);
  });

  test('are stopped by 0', () => {
    const { budget, add } = budgetOf('0');

    const a = add('a', 'old');

    expect(budget.tryAcquire(a)).toBeUndefined();
    expect(budget.poolOf(a)?.limit).toBe(0);
  });

  test('of sets that are not cached are limited by set', () => {
    const machines = new Store<Machine>(BY_CONTROLLER);
    const budget = new ReplacementBudget({ machines, owners: {}, clock });
    const { add } = budgetOf();
    const [a, b, c] = [add('a', 'old'), add('b', 'old'), add('c', 'new')];
    for (const one of [a, b, c]) machines.put(one);

    expect([a, b, c].map((one) => budget.tryAcquire(one) !== undefined)).toEqual([true, false, true]);
  });

  test('of sets that are not cached are limited by label, as in the original', () => {
    const machines = new Store<Machine>(BY_CONTROLLER);
    const budget = new ReplacementBudget({ machines, owners: {}, clock });
    const { add } = budgetOf();
    const [a, b] = [add('a', 'old'), add('b', 'new')];
    for (const one of [a, b]) {
      Object.assign(one.metadata, { labels: { name: 'deployment-1' } });
      machines.put(one);
    }

    expect([a, b].map((one) => budget.tryAcquire(one) !== undefined)).toEqual([true, false]);
  });

  test('of a machine without owner are not limited', () => {
    const budget = new ReplacementBudget({ machines: new Store<Machine>(BY_CONTROLLER), owners: {}, clock });

    expect(budget.tryAcquire(machine())).toBeDefined();
  });
});
