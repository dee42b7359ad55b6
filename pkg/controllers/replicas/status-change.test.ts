import { expect, test } from '@jest/globals';

import { statusChange } from './status-change.ts';

interface Status {
  observedGeneration?: number;
  replicas?: number;
  readyReplicas?: number;
  conditions?: readonly string[];
}

test.each<{ title: string; stored: Status | undefined; wanted: Partial<Status>; change: unknown }>([
  {
    title: 'the first tells of zeros too, which columns show',
    stored: undefined,
    wanted: { observedGeneration: 1, replicas: 0 },
    change: { observedGeneration: 1, replicas: 0 },
  },
  {
    title: 'a later one is silent of zeros that Go writers leave out',
    stored: { observedGeneration: 1 },
    wanted: { observedGeneration: 1, replicas: 0, conditions: [] },
    change: undefined,
  },
  {
    title: 'only what changed is written',
    stored: { observedGeneration: 1, replicas: 2, readyReplicas: 1 },
    wanted: { observedGeneration: 1, replicas: 2, readyReplicas: 2 },
    change: { readyReplicas: 2 },
  },
  {
    title: 'what fell to zero is written',
    stored: { observedGeneration: 1, replicas: 2 },
    wanted: { replicas: 0 },
    change: { replicas: 0 },
  },
  {
    title: 'a list without members is removed',
    stored: { observedGeneration: 1, conditions: ['x'] },
    wanted: { conditions: [] },
    change: { conditions: null },
  },
  { title: 'what nobody names stays', stored: { observedGeneration: 1, replicas: 2 }, wanted: {}, change: undefined },
])('of a status $title', ({ stored, wanted, change }) => {
  expect(statusChange<Status>(stored, wanted)).toEqual(change);
});
