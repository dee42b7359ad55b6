import { expect, test } from '@jest/globals';

import { KeptMachine } from '../../../../test/kept-machine.ts';
import type { MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { machineConditions } from './conditions.ts';

const conditionOf = ({ machine }: KeptMachine): MachineCondition | undefined =>
  machine.status?.machineConditions?.find(({ type }) => type === 'VMState');

// promise: openstack/state-server-shown-novas
// promise: openstack/cloud/follows-search-vms-call
test('the state that lists tell of a VM is shown, follows, and outlives a restart', async () => {
  const kept = new KeptMachine();
  const providerID = providerIDOf(kept.machine);
  const lists = (state?: string): void =>
    kept.world.vmStates.saw([{ providerID, machineName: 'm-1', machineUID: undefined, state }], true);
  const woken: string[] = [];
  kept.world.vmStates.onChange((ids) => void woken.push(...ids));
  lists();
  await kept.rest();
  expect(conditionOf(kept)).toBeUndefined();

  lists('ACTIVE');
  await kept.rest();
  expect(conditionOf(kept)).toMatchObject({ status: 'True', reason: 'ACTIVE' });
  lists('ACTIVE');
  lists('SHUTOFF');
  await kept.rest();
  expect(conditionOf(kept)).toMatchObject({
    reason: 'SHUTOFF',
    message: `The provider lists VM ${providerID} in state SHUTOFF.`,
  });
  expect(woken).toEqual([providerID, providerID]);

  lists();
  kept.world.restart();
  await kept.rest();
  expect(machineConditions(kept.machine, 0)).toContainEqual(conditionOf(kept));
  expect(conditionOf(kept)?.reason).toBe('SHUTOFF');
});

test('it is written once where no such condition is stored, as by the definitions of the original', async () => {
  const kept = new KeptMachine();
  const providerID = providerIDOf(kept.machine);
  kept.world.vmStates.saw([{ providerID, machineName: 'm-1', machineUID: undefined, state: 'ACTIVE' }], true);
  await kept.rest();
  expect(conditionOf(kept)).toBeDefined();

  kept.changeMachine((m) => delete m.status?.machineConditions);
  await kept.rest();

  expect(conditionOf(kept)).toBeUndefined();
});
