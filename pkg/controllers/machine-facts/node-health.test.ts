import { describe, expect, test } from '@jest/globals';

import type { NodeCondition } from '../../apis/wire.ts';
import { node } from '../../../test/builders.ts';
import { conditionsChanged, describeConditions, isBeingSetUp, isHealthy } from './node-health.ts';

const WATCHED = ['KernelDeadlock', 'DiskPressure'];

const c = (type: string, status: string, reason?: string, message?: string): NodeCondition => ({
  type,
  status,
  ...(reason !== undefined && { reason }),
  ...(message !== undefined && { message }),
});

describe('health of a Node', () => {
  test.each([
    { what: 'no condition at all', conditions: [], healthy: false },
    { what: 'Ready', conditions: [c('Ready', 'True')], healthy: true },
    { what: 'not Ready', conditions: [c('Ready', 'False')], healthy: false },
    { what: 'Ready Unknown', conditions: [c('Ready', 'Unknown')], healthy: false },
    { what: 'Ready absent, others fine', conditions: [c('DiskPressure', 'False')], healthy: true },
    { what: 'a watched one True', conditions: [c('Ready', 'True'), c('DiskPressure', 'True')], healthy: false },
    { what: 'a watched one Unknown', conditions: [c('Ready', 'True'), c('DiskPressure', 'Unknown')], healthy: false },
    { what: 'another one True', conditions: [c('Ready', 'True'), c('MemoryPressure', 'True')], healthy: true },
  ])('$what: $healthy', ({ conditions, healthy }) => {
    expect(isHealthy(conditions, WATCHED)).toBe(healthy);
  });

  test.each([
    { what: 'nothing', before: [c('Ready', 'True')], after: [c('Ready', 'True')], changed: false },
    {
      what: 'what a preservation says',
      before: [c('Preserved', 'True', 'a', 'x')],
      after: [c('Preserved', 'True', 'a', 'y')],
      changed: true,
    },
    {
      what: 'a message',
      before: [c('Ready', 'True', 'a', 'x')],
      after: [c('Ready', 'True', 'a', 'y')],
      changed: false,
    },
    { what: 'a reason', before: [c('Ready', 'True', 'a')], after: [c('Ready', 'True', 'b')], changed: false },
    { what: 'a status', before: [c('Ready', 'True')], after: [c('Ready', 'False')], changed: true },
    { what: 'a new type', before: [c('Ready', 'True')], after: [c('Ready', 'True'), c('A', 'True')], changed: true },
    {
      what: 'a type that went',
      before: [c('Ready', 'True'), c('A', 'True')],
      after: [c('Ready', 'True')],
      changed: true,
    },
    { what: 'one type for another', before: [c('A', 'True')], after: [c('B', 'True')], changed: true },
    {
      what: 'the reason of a maintenance',
      before: [c('Maintenance', 'False', 'Draining', 'x')],
      after: [c('Maintenance', 'False', 'DrainFailed', 'x')],
      changed: true,
    },
    {
      what: 'what a maintenance waits for',
      before: [c('Maintenance', 'False', 'Draining', 'x')],
      after: [c('Maintenance', 'False', 'Draining', 'y')],
      changed: true,
    },
    {
      what: 'the reason of an in-place update',
      before: [c('InPlaceUpdate', 'True', 'SelectedForUpdate')],
      after: [c('InPlaceUpdate', 'True', 'DrainSuccessful')],
      changed: true,
    },
  ])('$what is news: $changed', ({ before, after, changed }) => {
    expect(conditionsChanged(before, after)).toBe(changed);
  });

  test.each(['node.gardener.cloud/critical-components-not-ready', 'node.cloudprovider.kubernetes.io/uninitialized'])(
    'is set up once taint %s with effect NoSchedule is gone',
    (key) => {
      const withTaint = (effect: string): ReturnType<typeof node> =>
        node((n) => {
          n.spec.taints = [{ key, effect }];
        });

      expect(isBeingSetUp(withTaint('NoSchedule'))).toBe(true);
      expect(isBeingSetUp(withTaint('NoExecute'))).toBe(false);
      expect(isBeingSetUp(node())).toBe(false);
    },
  );

  test('is described in words', () => {
    expect(describeConditions([c('Ready', 'Unknown', 'NodeStatusUnknown'), c('A', 'True')])).toBe(
      'Ready is Unknown (NodeStatusUnknown), A is True',
    );
    const lastHeartbeatTime = '2026-01-01T00:38:30Z';
    const silent = { ...c('Ready', 'Unknown', 'NodeStatusUnknown'), lastHeartbeatTime };
    expect(describeConditions([silent, { ...c('Ready', 'False', 'KubeletNotReady'), lastHeartbeatTime }])).toBe(
      'Ready is Unknown (NodeStatusUnknown: the kubelet has been silent since 2026-01-01T00:38:30Z), Ready is False (KubeletNotReady)',
    );
  });
});
