import { describe, expect, test } from '@jest/globals';

import { drainHooksOf } from './drain-hooks.ts';

const OURS = 'pre-drain.hook.machine.sapcloud.io';
const CLUSTER_API = 'pre-drain.delete.hook.machine.cluster.x-k8s.io';

describe('hooks of a drain', () => {
  test.each([
    { key: `${OURS}/backup`, deletion: true, maintenance: true },
    { key: OURS, deletion: true, maintenance: true },
    { key: `${CLUSTER_API}/move-leader`, deletion: true, maintenance: false },
    { key: CLUSTER_API, deletion: true, maintenance: false },
    { key: `${OURS}x/backup`, deletion: false, maintenance: false },
    { key: 'pre-terminate.delete.hook.machine.cluster.x-k8s.io/x', deletion: false, maintenance: false },
  ])('$key holds up a deletion: $deletion, a maintenance: $maintenance', ({ key, deletion, maintenance }) => {
    const machine = { metadata: { annotations: { [key]: '' } } } as never;

    expect(drainHooksOf(machine, 'deletion')).toEqual(deletion ? [key] : []);
    expect(drainHooksOf(machine, 'maintenance')).toEqual(maintenance ? [key] : []);
  });

  test('are told in order', () => {
    const machine = { metadata: { annotations: { [`${OURS}/b`]: '', other: '', [`${OURS}/a`]: '' } } } as never;

    expect(drainHooksOf(machine, 'maintenance')).toEqual([`${OURS}/a`, `${OURS}/b`]);
  });
});
