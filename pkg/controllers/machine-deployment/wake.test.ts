import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node } from '../../../test/builders.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Node } from '../../apis/wire.ts';
import type { ChangeHandler, Informer } from '../../kube/cache/lister.ts';
import { Store } from '../../kube/cache/store.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { wakeMachineDeployments } from './wake.ts';

/** A cache that a test fills. */
class Filled<T extends KubeObject> extends Store<T> {
  readonly hasSynced = true;
  #handler: ChangeHandler<T> = () => undefined;

  onChange(handler: ChangeHandler<T>): void {
    this.#handler = handler;
  }

  see(object: T): void {
    for (const { old, current } of this.put(object)) this.#handler(old, current);
  }

  /** What it lacks of an Informer nobody asks for here. */
  get informer(): Informer<T> {
    return this as unknown as Informer<T>;
  }
}

test.each([
  { what: 'a maintenance', annotation: 'machine.sapcloud.io/maintenance-since', wakes: true },
  { what: 'the preparation of a deletion', annotation: 'machine.sapcloud.io/deletion-preparation-since', wakes: true },
  { what: 'what concerns no other', annotation: 'example.com/note', wakes: false },
])('the beginning and the end of $what wake the MachineDeployment: $wakes', ({ annotation, wakes }) => {
  const deployment = machineDeployment();
  const set = machineSet((s) => {
    s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
  });
  const seen = (version: string, annotations: Record<string, string>): Machine =>
    machine((m) => {
      Object.assign(m.metadata, { resourceVersion: version, annotations });
      m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    });
  const [deployments, sets, machines] = [new Filled(), new Filled(), new Filled<Machine>()];
  deployments.put(deployment);
  sets.put(set);
  machines.put(seen('1', {}));
  const woken: string[] = [];
  const caches = { machineDeployments: deployments.informer, machineSets: sets.informer, machines: machines.informer };
  wakeMachineDeployments(
    caches as unknown as Parameters<typeof wakeMachineDeployments>[0],
    { all: () => [] } as unknown as Parameters<typeof wakeMachineDeployments>[1],
    { add: (key) => void woken.push(key), addAfter: () => undefined },
  );

  machines.see(seen('2', { [annotation]: 'x' }));
  const atBeginning = new Set(woken.splice(0));
  machines.see(seen('3', {}));

  const want = new Set(wakes ? [`default/${deployment.metadata.name}`] : []);
  expect(atBeginning).toEqual(want);
  expect(new Set(woken)).toEqual(want);
});

test.each([
  {
    what: 'is kept from the autoscaler',
    by: 'cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm',
    wakes: true,
  },
  { what: 'is annotated by anybody', by: 'example.com/note', wakes: false },
])('a Node that $what wakes the MachineDeployment: $wakes', ({ by, wakes }) => {
  const deployment = machineDeployment();
  const set = machineSet((s) => {
    s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
  });
  const [deployments, sets, nodes] = [new Filled(), new Filled(), new Filled<Node>()];
  const machines = new Filled<Machine>(MACHINE_INDEXES);
  deployments.put(deployment);
  sets.put(set);
  machines.put(
    machine((m) => {
      m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    }),
  );
  nodes.put(node());
  const woken: string[] = [];
  const caches = { machineDeployments: deployments.informer, machineSets: sets.informer, machines: machines.informer };
  wakeMachineDeployments(
    caches as unknown as Parameters<typeof wakeMachineDeployments>[0],
    { all: () => [{ nodes: nodes.informer }] } as unknown as Parameters<typeof wakeMachineDeployments>[1],
    { add: (key) => void woken.push(key), addAfter: () => undefined },
  );

  nodes.see(node((n) => Object.assign(n.metadata, { resourceVersion: '9', annotations: { [by]: 'true' } })));

  expect(woken).toEqual(wakes ? ['default/deployment-1'] : []);
});
