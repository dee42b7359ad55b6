import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet } from '../../../test/builders.ts';
import { DeploymentWorld } from '../../../test/fakes/replicas-world.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { observeDeployment } from './observed.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const deployment = machineDeployment();
const set = machineSet(
  (s) => void (s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')]),
);
const owned = (name: string) =>
  machine((m) =>
    Object.assign(m.metadata, {
      name,
      uid: name,
      ownerReferences: [controllerReference(set, API_VERSION, 'MachineSet')],
    }),
  );
const changed = <T extends { metadata: object }>(object: T): T => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion: '9' },
});

test.each<{ what: string; change: (deps: DeploymentWorld) => void; isSame: boolean }>([
  { what: 'nothing', change: () => undefined, isSame: true },
  {
    what: 'a Machine of nobody',
    change: ({ machines }) => machines.put(machine((m) => void (m.metadata.name = 'm-9'))),
    isSame: true,
  },
  { what: 'a Machine', change: ({ machines }) => machines.put(changed(owned('m-1'))), isSame: false },
  { what: 'one Machine more', change: ({ machines }) => machines.put(owned('m-2')), isSame: false },
  { what: 'one Machine less', change: ({ machines }) => machines.remove('default/m-1'), isSame: false },
  { what: 'a set', change: ({ machineSets }) => machineSets.put(changed(set)), isSame: false },
  { what: 'one set less', change: ({ machineSets }) => machineSets.remove('default/set-1'), isSame: false },
])('when $what has changed, what was observed still counts: $isSame', ({ change, isSame }) => {
  const deps = new DeploymentWorld(deployment, { sets: [set], machines: [owned('m-1')] });
  const before = observeDeployment(deps, deployment);

  change(deps);

  expect(observeDeployment(deps, deployment, before) === before).toBe(isSame);
});

test('another version of the MachineDeployment is observed again', () => {
  const deps = new DeploymentWorld(deployment, { sets: [set] });
  const before = observeDeployment(deps, deployment);
  const later = changed(deployment);

  expect(observeDeployment(deps, later, before).deployment).toBe(later);
});
