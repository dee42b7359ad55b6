import { expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { ApiError } from '../../kube/errors.ts';
import { machineSets } from '../../kube/resource.ts';
import { controllerReference } from '../../reconcile/ownership.ts';
import { claimedMachines, claimMachines } from './claim.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../indexes/owner-index.ts';

const SET = machineSet();
const OURS = controllerReference(SET, 'machine.sapcloud.io/v1alpha1', 'MachineSet');
const signal = new AbortController().signal;

const selected = machine();
const astray = machine((m) => {
  m.metadata.name = 'm-2';
  m.metadata.labels = { pool: 'b' };
  m.metadata.ownerReferences = [OURS];
});

test.each([
  { live: 'there', set: SET, adopts: true },
  { live: 'gone', set: undefined, adopts: false },
  { live: 'being deleted', set: machineSet((s) => void (s.metadata.deletionTimestamp = 'now')), adopts: false },
  { live: 'another one', set: machineSet((s) => void (s.metadata.uid = 'of another')), adopts: false },
])('a set that is $live, read live, adopts: $adopts', async ({ set, adopts }) => {
  const client = new MemoryClient();
  if (set !== undefined) client.put(machineSets, set);
  const machines = new MemoryInformer([selected], { [CONTROLLER_INDEX]: controllerIndex });

  await claimMachines({ machines, reader: client, writer: client }, SET, signal);

  const { uid, resourceVersion } = selected.metadata;
  const adoption = { intent: 'change', what: 'machines/m-1', uid, resourceVersion };
  expect(client.writes).toMatchObject(adopts ? [adoption] : []);
});

test.each([
  { what: 'is gone', failure: new ApiError(404, 'NotFound', 'gone') },
  { what: 'is another one by now', failure: new ApiError(422, 'Invalid', 'uid') },
])('a Machine that $what needs no release', async ({ failure }) => {
  const client = new MemoryClient();
  client.failures.push(failure);
  const machines = new MemoryInformer([astray], { [CONTROLLER_INDEX]: controllerIndex });

  await claimMachines({ machines, reader: client, writer: client }, SET, signal);

  expect(client.writes).toMatchObject([{ what: 'machines/m-2', resourceVersion: '1' }]);
});

test('a Machine that cannot be released fails the pass, so that it is tried again', async () => {
  const client = new MemoryClient();
  client.failures.push(new ApiError(409, 'Conflict', 'changed'));
  const machines = new MemoryInformer([astray], { [CONTROLLER_INDEX]: controllerIndex });

  await expect(claimMachines({ machines, reader: client, writer: client }, SET, signal)).rejects.toThrow('changed');
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
