import { expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { machineSets } from '../../kube/client/resource.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { claimedMachines } from './claim.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../operator/indexes/owner-index.ts';

const SET = machineSet((s) => void (s.metadata.finalizers = [MACHINE_FINALIZER]));
const OURS = controllerReference(SET, 'machine.sapcloud.io/v1alpha1', 'MachineSet');

const selected = machine();
const astray = machine((m) => {
  m.metadata.name = 'm-2';
  m.metadata.labels = { pool: 'b' };
  m.metadata.ownerReferences = [OURS];
});

test.each([
  { live: 'there', change: {}, adopts: true },
  { live: 'gone', change: 'gone', adopts: false },
  { live: 'being deleted', change: { deletionTimestamp: 'now' }, adopts: false },
  { live: 'another one', change: { uid: 'of another' }, adopts: false },
] as const)('a set that is $live, read live, adopts: $adopts', async ({ change, adopts }) => {
  const world = new SetWorld([SET], [selected]);
  if (change === 'gone') world.client.lose(machineSets, SET.metadata);
  else world.client.put(machineSets, { ...SET, metadata: { ...SET.metadata, ...change } });

  await world.pass();

  const { uid, resourceVersion } = selected.metadata;
  const adoption = { verb: 'patch', intent: 'change', what: 'machines/m-1', uid, resourceVersion };
  expect(world.client.writes.filter(({ what }) => what === 'machines/m-1')).toMatchObject(adopts ? [adoption] : []);
});

test.each([
  { what: 'is gone', failure: new ApiError(404, 'NotFound', 'gone'), throws: false },
  { what: 'may not be changed', failure: new ApiError(403, 'Forbidden', 'protected'), throws: false, isTold: true },
  { what: 'a policy keeps', failure: new ApiError(422, 'Invalid', 'denied'), throws: false, isTold: true },
  { what: 'has changed', failure: new ApiError(409, 'Conflict', 'changed'), throws: true },
])('a Machine to be released that $what fails the pass, so that it is tried again: $throws', async (row) => {
  const world = new SetWorld([SET], [astray]);
  world.client.failures.push(row.failure);

  const { result } = await world.pass();

  expect(world.client.writes[0]).toMatchObject({ what: 'machines/m-2', resourceVersion: '1' });
  expect(result === row.failure).toBe(row.throws);
  expect(world.events.includes('ChangeRefused')).toBe(row.isTold ?? false);
});

test('the Machines of a set are gone through once as long as neither they nor the set change', () => {
  const own = machine((m) => void (m.metadata.ownerReferences = [OURS]));
  const machines = new MemoryInformer([own], { [CONTROLLER_INDEX]: controllerIndex });
  const claimed = claimedMachines({ machines }, SET);

  expect(claimed).toEqual([own]);
  expect(claimedMachines({ machines }, SET)).toBe(claimed);
  const other = machineSet((s) => void (s.spec.selector = { matchLabels: { pool: 'of-others' } }));
  expect(claimedMachines({ machines }, other)).toEqual([]);
  machines.put(astray);
  expect(claimedMachines({ machines }, SET)).toEqual([own]);
  machines.remove('default/m-1');
  expect(claimedMachines({ machines }, SET)).toEqual([]);
});

test('a Machine that may not be adopted takes a place all the same, and the rest of the set is looked after', async () => {
  const orphan = machine((m) => void Object.assign(m.metadata, { name: 'orphan', uid: 'uid-of-orphan' }));
  const members = ['m-1', 'm-2'].map((name) =>
    machine((m) => Object.assign(m.metadata, { name, uid: `uid-of-${name}`, ownerReferences: [OURS] })),
  );
  for (const member of members.slice(1)) member.status.currentStatus.phase = 'Failed';
  const world = new SetWorld([{ ...SET, spec: { ...SET.spec, replicas: 3 } }], [orphan, ...members]);
  world.client.failures.push(new ApiError(403, 'Forbidden', 'protected'));

  await world.pass();

  expect(world.acts.map(({ verb, what }) => `${verb} ${what}`)).toEqual([
    'patch machines/orphan',
    'delete machines/m-2',
    'create machines/set-1-new-1',
  ]);
  expect(JSON.stringify(world.machineSets.get('default/set-1')?.status)).toContain(
    'A change of machines/orphan is refused, and retried: protected',
  );
});

test('a refused read before an adoption is not told as a change', async () => {
  const world = new SetWorld([SET], [selected]);
  world.client.readFailure = new ApiError(403, 'Forbidden', 'no rule');

  await world.pass();

  expect(JSON.stringify(world.machineSets.get('default/set-1')?.status)).toContain(
    'A request is refused, and retried: no rule',
  );
});
