import { expect, test } from '@jest/globals';

import { KeptMachine } from '../../../../test/kept-machine.ts';
import { MAINTENANCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';

const DELETED_AT = '2026-01-01T00:00:00Z';
const MARK = 'node.machine.sapcloud.io/cordoned-by-maintenance';

const isCordoned = (kept: KeptMachine): boolean => kept.node.spec?.unschedulable === true;

/** A machine whose Node is being drained for its deletion, and the Machine as it was before. */
async function draining(kept = new KeptMachine()): Promise<{ kept: KeptMachine; before: Machine }> {
  const before = kept.machine;
  kept.changeMachine((m) => void (m.metadata.deletionTimestamp = DELETED_AT));
  for (let i = 0; i < 6; i++) await kept.pass();
  kept.changeNode((n) => {
    const { type, status, reason, message } = kept.world.drains.requests[0]?.nodeCondition ?? {};
    n.status?.conditions?.push({ type: `${type}`, status: `${status}`, reason: `${reason}`, message: `${message}` });
  });
  expect([isCordoned(kept), kept.condition('Terminating')?.status]).toEqual([true, 'True']);
  return { kept, before };
}

/** A restore of the control cluster puts the Machine back as it was; this process began after it, unless it `goesOn`. */
function restore(kept: KeptMachine, before: Machine, goesOn = false): void {
  if (!goesOn) kept.world.restart();
  kept.world.machines.put(structuredClone(before));
  kept.changeMachine(() => undefined);
}

test('a deletion that a restore of the control cluster undoes gives the Node back', async () => {
  const { kept, before } = await draining();

  restore(kept, before);
  await kept.rest();

  expect([isCordoned(kept), kept.condition('Terminating')?.status]).toEqual([false, 'False']);
  expect(kept.node.metadata.annotations).toEqual({});
  expect(kept.phase).toBe('Running');
});

test('a deletion that a restore of the control cluster undoes under a process that goes on evicts no more pods, and the next one drains anew', async () => {
  const { kept, before } = await draining();
  const { world } = kept;
  const stateOfDrain = () => world.activities.get(kept.machine.metadata.uid, 'drain')?.state;
  expect(stateOfDrain()).toBe('running');

  restore(kept, before, true);
  await kept.rest();
  expect([isCordoned(kept), stateOfDrain()]).toEqual([false, undefined]);
  expect(world.drains.requests).toHaveLength(1);

  kept.changeMachine((m) => void (m.metadata.deletionTimestamp = DELETED_AT));
  for (let i = 0; i < 6; i++) await kept.pass();
  expect([isCordoned(kept), stateOfDrain()]).toEqual([true, 'running']);
  expect(world.drains.requests).toHaveLength(2);
});

test('a deletion that is undone and begins again between two passes drains anew', async () => {
  const { kept, before } = await draining();
  await kept.endDrains();

  kept.world.machines.put(structuredClone(before));
  kept.changeMachine((m) => void (m.metadata.deletionTimestamp = DELETED_AT));
  for (let i = 0; i < 6; i++) await kept.pass();

  expect(kept.world.drains.requests).toHaveLength(2);
  expect(kept.world.driver.calls).toEqual([]);
});

test('a deletion that is undone leaves the cordon of somebody else', async () => {
  const kept = new KeptMachine();
  kept.changeNode((n) => void (n.spec = { ...n.spec, unschedulable: true }));
  const { before } = await draining(kept);

  restore(kept, before);
  await kept.rest();

  expect([isCordoned(kept), kept.condition('Terminating')?.status]).toEqual([true, 'False']);
});

test('a deletion that is undone leaves the Node of a machine in maintenance cordoned, until that ends', async () => {
  const kept = new KeptMachine();
  kept.annotateNode(MAINTENANCE_ANNOTATION, 'true');
  const { before } = await draining(kept);

  restore(kept, before);
  await kept.rest();
  expect([isCordoned(kept), kept.condition('Terminating')?.status]).toEqual([true, 'False']);

  kept.annotateNode(MAINTENANCE_ANNOTATION, undefined);
  await kept.rest();
  expect(isCordoned(kept)).toBe(false);
});

test.each([
  { live: 'is being deleted', change: (m: Machine) => void (m.metadata.deletionTimestamp = DELETED_AT) },
  { live: 'is another one', change: (m: Machine) => void (m.metadata.uid = 'another') },
  { live: 'is gone', change: undefined },
])('a Node stays cordoned whose machine is kept in an old cache alone: it $live', async ({ change }) => {
  const { kept, before } = await draining();
  restore(kept, before);
  const live = structuredClone(kept.machine);
  change?.(live);
  kept.world.liveMachines.set('default/m-1', change === undefined ? undefined : live);

  for (let i = 0; i < 3; i++) await kept.pass();

  expect([isCordoned(kept), kept.condition('Terminating')?.status]).toEqual([true, 'True']);
  expect(kept.node.metadata.annotations).toEqual({ [MARK]: 'true' });
});
