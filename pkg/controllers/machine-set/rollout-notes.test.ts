import { expect, test } from '@jest/globals';

import { machineDeployment, machineSet } from '../../../test/builders.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { leftRolloutNotes } from './controller.ts';

const NOTE = 'deployment.machine.sapcloud.io/prefer-no-schedule';
const CLOSED = 'node.machine.sapcloud.io/scale-up-disabled';

test.each([
  { title: 'noted as tainted', noted: true, closed: false, owned: false, want: { annotations: { [NOTE]: null } } },
  {
    title: 'that did not refill in an update in place',
    noted: true,
    closed: true,
    owned: false,
    want: { annotations: { [NOTE]: null }, labels: { [CLOSED]: null } },
  },
  { title: 'that somebody else keeps from refilling', noted: false, closed: true, owned: false, want: undefined },
  { title: 'of a MachineDeployment', noted: true, closed: true, owned: true, want: undefined },
])('of a set without MachineDeployment what a rollout has left goes: $title', ({ noted, closed, owned, want }) => {
  const set = machineSet((s) => {
    if (noted) s.metadata.annotations[NOTE] = 'True';
    if (closed) s.metadata.labels[CLOSED] = 'true';
    s.metadata.ownerReferences = owned
      ? [controllerReference(machineDeployment(), 'machine.sapcloud.io/v1alpha1', 'MachineDeployment')]
      : [];
  });

  expect(leftRolloutNotes(set)).toEqual(want && { metadata: want });
});
