import { expect, test } from '@jest/globals';

import { KeptMachine } from '../../../../test/kept-machine.ts';
import type { MachineCondition } from '../../../apis/machine/v1alpha1/machine.ts';
import {
  DELETION_POLICY_ANNOTATION,
  PRESERVE_ANNOTATION,
  PRIORITY_ANNOTATION,
  UPGRADE_INDEX_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { machineConditions } from './conditions.ts';

const conditionOf = (kept: KeptMachine): MachineCondition | undefined =>
  kept.machine.status?.machineConditions?.find(({ type }) => type === 'InvalidAnnotation');
const told = (kept: KeptMachine): string[] =>
  kept.world.events.filter(({ reason }) => reason === 'InvalidAnnotation').map(({ message }) => message);

// promise: annotations-mean-nothing/condition-event-corrected
test('annotations that mean nothing are one condition, and one Event for each text, until they are corrected', async () => {
  const kept = new KeptMachine();
  kept.annotateMachine(UPGRADE_INDEX_ANNOTATION, 'first');
  kept.annotateMachine(PRIORITY_ANNOTATION, 'low');
  await kept.rest();
  kept.world.restart();
  await kept.rest();

  expect(conditionOf(kept)).toMatchObject({
    status: 'True',
    reason: 'UnknownValue',
    message: expect.stringMatching(/upgrade-index of the Machine is "first".* machinepriority.* is "low"/),
  });
  expect(told(kept)).toEqual([conditionOf(kept)?.message]);
  expect(machineConditions(kept.machine, 0)).toContainEqual(conditionOf(kept));

  kept.annotateNode(PRESERVE_ANNOTATION, 'forever');
  kept.annotateMachine(UPGRADE_INDEX_ANNOTATION, '1');
  await kept.rest();
  expect(conditionOf(kept)?.message).toMatch(/^Annotation machinepriority.*preserve of Node m-1 is "forever"/);
  expect(told(kept)).toHaveLength(2);

  kept.annotateNode(PRESERVE_ANNOTATION, undefined);
  kept.annotateMachine(PRIORITY_ANNOTATION, '3');
  await kept.rest();
  expect(conditionOf(kept)).toBeUndefined();
  expect(told(kept)).toHaveLength(2);
});

test('one Event tells of them where no such condition is stored, as by the definitions of the original, and again when they come back', async () => {
  const kept = new KeptMachine();
  const passWithoutCondition = async (): Promise<void> => {
    await kept.rest();
    kept.changeMachine((m) => delete m.status?.machineConditions);
  };
  kept.annotateMachine(UPGRADE_INDEX_ANNOTATION, 'first');
  for (let i = 0; i < 3; i++) await passWithoutCondition();
  expect(told(kept)).toHaveLength(1);

  kept.annotateMachine(UPGRADE_INDEX_ANNOTATION, '1');
  await passWithoutCondition();
  kept.annotateMachine(UPGRADE_INDEX_ANNOTATION, 'first');
  await passWithoutCondition();
  expect(told(kept)).toHaveLength(2);
});

test('they are told of a machine that is being deleted too', async () => {
  const kept = new KeptMachine((m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    m.metadata.annotations = { [DELETION_POLICY_ANNOTATION]: 'soft' };
  });

  await kept.world.reconcile();

  expect(conditionOf(kept)?.message).toContain('is "soft", but must be one of graceful, unsafe, forced');
});
