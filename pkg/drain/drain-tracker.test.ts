import { expect, test } from '@jest/globals';

import type { Pod } from '../apis/wire.ts';
import type { DrainProgress } from './drain.ts';
import { DrainTracker } from './drain-tracker.ts';

const pod: Pod = {
  metadata: { name: 'web', namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
};

test('reports every change, and nothing else', () => {
  const reports: DrainProgress[] = [];
  const progress = new DrainTracker((report) => reports.push(report));

  progress.expect([]);
  progress.expect([pod]);
  progress.block(pod, 'disruption-budget', 'pdb');
  progress.block(pod, 'disruption-budget', 'pdb');
  progress.unblock(pod);
  progress.unblock(pod);
  progress.finish(pod);
  progress.finish(pod);

  expect(reports).toEqual([
    { remainingPods: 1, blocked: [] },
    { remainingPods: 1, blocked: [{ pod: 'default/web', reason: 'disruption-budget', detail: 'pdb' }] },
    { remainingPods: 1, blocked: [] },
    { remainingPods: 0, blocked: [] },
  ]);
});

test('still waits for the volumes of a pod that is gone', () => {
  const progress = new DrainTracker(() => undefined);
  progress.expect([pod]);

  progress.blockVolumes(pod, 'volume-detach', 'pv-1');
  progress.finish(pod);

  expect(progress.snapshot()).toEqual({
    remainingPods: 0,
    blocked: [{ pod: 'default/web', reason: 'volume-detach', detail: 'pv-1' }],
  });
});
