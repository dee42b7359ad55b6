import { expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { machineDeployments } from '../../../kube/client/resource.ts';

const deployment = machineDeployment((d) => void (d.metadata.finalizers = [MACHINE_FINALIZER]));
const orphan = machineSet();

test.each([
  { live: 'as it was seen', change: {}, adopts: true },
  { live: 'being deleted', change: { deletionTimestamp: 'now' }, adopts: false },
  { live: 'another one', change: { uid: 'of another' }, adopts: false },
  { live: 'gone', change: undefined, adopts: false },
])('a MachineDeployment that is $live, read live, adopts: $adopts', async ({ change, adopts }) => {
  const deps = new DeploymentWorld(deployment, { sets: [orphan] });
  const { client } = deps;
  if (change === undefined) client.lose(machineDeployments, deployment.metadata);
  else client.put(machineDeployments, { ...deployment, metadata: { ...deployment.metadata, ...change } });

  await deps.pass();

  const { uid, resourceVersion } = orphan.metadata;
  const adoption = { what: 'machinesets/set-1', uid, resourceVersion };
  const ofSet = client.writes.filter(({ what }) => what === 'machinesets/set-1');
  expect(ofSet.slice(0, 1)).toMatchObject(adopts ? [adoption] : []);
});

test.each([
  { title: 'without machines', replicas: 0, creates: true },
  { title: 'that wants machines', replicas: 2, creates: false },
  { title: 'that wants machines and is kept by a policy', code: 422, reason: 'Invalid', replicas: 2, creates: false },
])('a set $title that may not be adopted is told of; the rest goes on: $creates', async (row) => {
  const { replicas, creates, code = 403, reason = 'Forbidden' } = row;
  const refusing = machineSet((s) => {
    s.spec.replicas = replicas;
    s.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-0' } };
  });
  const deps = new DeploymentWorld(deployment, { sets: [refusing] });
  deps.client.failures.push(new ApiError(code, reason, 'protected'));

  const { writes } = await deps.pass();

  expect(writes.some((write) => write.startsWith('create machinesets/'))).toBe(creates);
  expect(deps.events).toContain('ChangeRefused');
  const status = JSON.stringify(deps.machineDeployments.get('default/deployment-1')?.status);
  expect(status).toContain('A change of machinesets/set-1 is refused');
});

test('an empty set of another template that fails once to be adopted, as in a change of etcd, is no refusal, and is when it fails again', async () => {
  const failing = machineSet((s) => {
    s.spec.replicas = 0;
    s.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-0' } };
  });
  const deps = new DeploymentWorld(deployment, { sets: [failing] });
  const told: (readonly string[])[] = [];

  for (let passes = 0; passes < 2; passes += 1) {
    deps.client.failures.push(new ApiError(500, 'InternalError', 'etcdserver: leader changed'));
    const { result } = await deps.pass();
    told.push(deps.events.filter((reason) => reason === 'ChangeRefused'));
    expect(result).toMatchObject({ kind: 'requeue' });
    deps.clock.advance(10_000);
  }

  expect(deps.acts.map(({ verb }) => verb)).toContain('create');
  expect(told).toEqual([[], ['ChangeRefused']]);
});

test.each([
  { code: 403, reason: 'Forbidden' },
  { code: 422, reason: 'Invalid' },
])(
  'an empty set of the present template that may not be adopted ($code) ends the pass with the refusal: what is made in its place would have its name',
  async ({ code, reason }) => {
    const refusing = machineSet((s) => void (s.spec.replicas = 0));
    const empty = { ...deployment, spec: { ...deployment.spec, replicas: 0 } };
    const deps = new DeploymentWorld(empty, { sets: [refusing] });
    deps.client.failures.push(new ApiError(code, reason, 'protected'));

    const { writes } = await deps.pass();

    expect(writes.filter((write) => write.startsWith('create '))).toEqual([]);
    expect(deps.events).toContain('ChangeRefused');
  },
);
