import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { rolloutBar } from './bar.ts';

function deployment(
  replicas: number,
  updatedReplicas: number,
  availableReplicas: number,
  wanted = 4,
): MachineDeployment {
  return {
    metadata: { name: 'd', namespace: 'n', uid: 'u' },
    spec: { replicas: wanted },
    status: { replicas, updatedReplicas, availableReplicas },
  } as unknown as MachineDeployment;
}

test.each([
  { what: 'nothing yet', of: deployment(4, 0, 4), bar: '░░░░░░░░  0 of 4 updated, 4 available, 4 old' },
  {
    what: 'a new machine that is coming up',
    of: deployment(5, 1, 4),
    bar: '▒▒░░░░░░  1 of 4 updated, 4 available, 4 old',
  },
  {
    what: 'a new machine that is available',
    of: deployment(4, 1, 4),
    bar: '██░░░░░░  1 of 4 updated, 4 available, 3 old',
  },
  { what: 'all of them but one', of: deployment(4, 4, 3), bar: '██████▒▒  4 of 4 updated, 3 available' },
  { what: 'all of them', of: deployment(4, 4, 4), bar: '████████  4 of 4 updated, 4 available' },
  { what: 'a pool of none', of: deployment(0, 0, 0, 0), bar: '████████  0 of 0 updated, 0 available' },
])('the bar of a rollout shows $what', ({ of, bar }) => {
  expect(rolloutBar(of, bar.length + 1)).toBe(bar);
});

test('in a terminal that is too narrow there are the counts alone', () => {
  expect(rolloutBar(deployment(4, 1, 4), 20)).toBe('1 of 4 updated, 4 av');
});

test('the bar fits any terminal, whatever a status says', () => {
  const count = fc.nat({ max: 3_000 });
  fc.assert(
    fc.property(
      count,
      count,
      count,
      count,
      fc.integer({ min: 1, max: 250 }),
      (replicas, updated, available, wanted, columns) => {
        expect(rolloutBar(deployment(replicas, updated, available, wanted), columns).length).toBeLessThanOrEqual(
          columns,
        );
      },
    ),
  );
});
