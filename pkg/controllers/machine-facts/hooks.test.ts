import { describe, expect, test } from '@jest/globals';

import { hooksOf } from './hooks.ts';

const OURS = 'pre-drain.hook.machine.sapcloud.io';
const CLUSTER_API = 'pre-drain.delete.hook.machine.cluster.x-k8s.io';
const TERMINATION = 'pre-terminate.delete.hook.machine.cluster.x-k8s.io';

describe('hooks', () => {
  test.each([
    { key: `${OURS}/backup`, holdsUp: ['deletion', 'maintenance'] },
    { key: OURS, holdsUp: ['deletion', 'maintenance'] },
    { key: `${CLUSTER_API}/move-leader`, holdsUp: ['deletion'] },
    { key: CLUSTER_API, holdsUp: ['deletion'] },
    { key: `${OURS}x/backup`, holdsUp: [] },
    { key: `${TERMINATION}/leave-cluster`, holdsUp: ['termination'] },
    { key: TERMINATION, holdsUp: ['termination'] },
    { key: `${TERMINATION}x/y`, holdsUp: [] },
  ])('$key holds up $holdsUp', ({ key, holdsUp }) => {
    const machine = { metadata: { annotations: { [key]: '' } } } as never;

    const purposes = ['deletion', 'maintenance', 'termination'] as const;
    expect(purposes.filter((purpose) => hooksOf(machine, purpose).includes(key))).toEqual(holdsUp);
  });

  test('are told in order', () => {
    const machine = { metadata: { annotations: { [`${OURS}/b`]: '', other: '', [`${OURS}/a`]: '' } } } as never;

    expect(hooksOf(machine, 'maintenance')).toEqual([`${OURS}/a`, `${OURS}/b`]);
  });
});
