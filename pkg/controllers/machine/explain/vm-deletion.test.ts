import { expect, test } from '@jest/globals';

import { KeptMachine } from '../../../../test/kept-machine.ts';
import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import { machineConditions } from './conditions.ts';
import { explain } from './explain.ts';

const conditionOf = ({ machine }: KeptMachine): MachineCondition | undefined =>
  machine.status?.machineConditions?.find(({ type }) => type === 'VMDeletionRequested');
const eventsOf = ({ world }: KeptMachine): readonly string[] =>
  world.events.filter(({ reason }) => reason === 'VMDeletionRequested').map(({ message }) => message);

function lists(kept: KeptMachine, deletion?: string): void {
  const providerID = providerIDOf(kept.machine);
  kept.world.vmStates.saw([{ providerID, machineName: 'm-1', machineUID: undefined, deletion }], true);
}

test('a VM that somebody else wants deleted keeps its machine, which says so and what to do', async () => {
  const kept = new KeptMachine();
  const providerID = providerIDOf(kept.machine);
  lists(kept, 'it is being deleted');
  await kept.rest();
  lists(kept, 'it is being deleted');
  await kept.rest();

  const message = `The deletion of VM ${providerID} was requested at the provider: it is being deleted. The VM is kept until this Machine is deleted.`;
  expect(conditionOf(kept)).toMatchObject({ status: 'True', message });
  const remedy =
    'Delete this Machine of machines.machine.sapcloud.io (`kubectl delete mc`): its Node is drained, then its VM is deleted.';
  expect(eventsOf(kept)).toEqual([`${message} ${remedy}`]);
  expect(explain(kept.machine, 0)).toMatchObject({
    reason: 'DeletionRequested',
    message: expect.stringContaining(message),
    nextStep: remedy,
  });
  expect([kept.phase, kept.machine.metadata.deletionTimestamp]).toEqual(['Running', undefined]);
});

test('what was said of it outlives a restart, until a list says otherwise or the Machine is deleted', async () => {
  const kept = new KeptMachine();
  lists(kept, 'it is being deleted');
  await kept.rest();
  kept.world.restart();
  await kept.rest();
  expect(conditionOf(kept)).toBeDefined();

  const deleted = {
    ...kept.machine,
    metadata: { ...kept.machine.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
  };
  expect(machineConditions(deleted, 0).map(({ type }) => type)).not.toContain('VMDeletionRequested');

  lists(kept);
  await kept.rest();
  expect(conditionOf(kept)).toBeUndefined();
});

test('it is told once where no such condition is stored, as by the definitions of the original', async () => {
  const kept = new KeptMachine();
  lists(kept, 'it is being deleted');
  await kept.rest();

  kept.changeMachine((m) => delete m.status?.machineConditions);
  await kept.rest();

  expect(conditionOf(kept)).toBeUndefined();
  expect(eventsOf(kept)).toHaveLength(1);
});
