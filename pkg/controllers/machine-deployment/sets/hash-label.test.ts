import { expect, test } from '@jest/globals';

import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { MACHINE_FINALIZER, TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import {
  machine,
  machineDeployment,
  machineSet,
  type BuiltMachine,
  type BuiltMachineSet,
} from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { labelStep } from './hash-label.ts';

const HASH = '42';
const labelled = machine((m) => (m.metadata.labels[TEMPLATE_HASH_LABEL] = HASH));
const inTemplate = (s: BuiltMachineSet): void => {
  s.spec.template.metadata = { labels: { pool: 'a', [TEMPLATE_HASH_LABEL]: HASH } };
};

test.each<{ title: string; change: (s: BuiltMachineSet) => void; machines?: BuiltMachine[]; kind: string | undefined }>(
  [
    {
      title: 'has everything',
      change: (s) => (s.spec.selector = { matchLabels: { [TEMPLATE_HASH_LABEL]: HASH } }),
      kind: undefined,
    },
    { title: 'has nothing', change: () => undefined, kind: 'template' },
    {
      title: 'is being deleted',
      change: (s) => (s.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'),
      kind: undefined,
    },
    { title: 'has machines without the label', change: inTemplate, machines: [machine()], kind: 'machines' },
    { title: 'has labelled all', change: inTemplate, machines: [labelled], kind: 'selector' },
    {
      title: 'has not acted on the template yet',
      change: (s) => {
        inTemplate(s);
        s.metadata.generation = 2;
      },
      machines: [labelled],
      kind: undefined,
    },
    {
      title: 'has not counted its machines yet',
      change: (s) => {
        inTemplate(s);
        s.status.fullyLabeledReplicas = 0;
      },
      machines: [labelled],
      kind: undefined,
    },
  ],
)('a set that $title needs next: $kind', ({ change, machines = [labelled], kind }) => {
  expect(labelStep(machineSet(change), machines)?.kind).toBe(kind);
});

test('a Machine that may not be labelled keeps its MachineDeployment from nothing else, is told of, and tried again', async () => {
  const owner = machineDeployment((d) => {
    d.metadata.finalizers = [MACHINE_FINALIZER];
    d.spec.replicas = 3;
  });
  const adopted = machineSet((s) => {
    inTemplate(s);
    s.metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
  });
  const its = machine((m) => {
    m.metadata.ownerReferences = [controllerReference(adopted, API_VERSION, 'MachineSet')];
  });
  const deps = new DeploymentWorld(owner, { sets: [adopted], machines: [its] });
  const { client } = deps;
  const patch = client.patch.bind(client);
  const policy = { refuses: true };
  client.patch = async (intent, resource, ref, ...rest) =>
    policy.refuses && ref.name === 'm-1'
      ? Promise.reject(new ApiError(403, 'Forbidden', 'protected'))
      : patch(intent, resource, ref, ...rest);

  for (let passes = 0; passes < 3; passes += 1) await deps.pass();

  expect(deps.machineSets.get('default/set-1')?.spec.replicas).toBe(3);
  expect(deps.events.filter((reason) => reason === 'ChangeRefused')).toEqual(['ChangeRefused']);
  policy.refuses = false;
  deps.clock.advance(10_000);
  await deps.pass();
  expect(deps.machines.get('default/m-1')?.metadata.labels).toHaveProperty([TEMPLATE_HASH_LABEL]);
});
