import { describe, expect, test } from '@jest/globals';

import { machineDeployment, type BuiltMachineDeployment } from '../../../../test/builders.ts';
import { UPDATE_ORDER_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { isUpdateOrder, updateOrderOf } from '../../replicas/update-order-value.ts';
import { concerns, orderHold } from './update-order.ts';

/** One of one replica, that is rolled out unless `change` says otherwise. */
function deployment(
  name: string,
  order: string | undefined,
  change: (d: BuiltMachineDeployment) => void = () => undefined,
): BuiltMachineDeployment {
  return machineDeployment((d) => {
    d.metadata.name = name;
    if (order !== undefined) d.metadata.annotations[UPDATE_ORDER_ANNOTATION] = order;
    Object.assign(d.metadata, { generation: 2 });
    d.spec.replicas = 1;
    d.status = { observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1 };
    change(d);
  });
}

const rolling = (d: BuiltMachineDeployment): void => {
  d.status = { ...d.status, replicas: 2, updatedReplicas: 1 };
};

describe('the annotation', () => {
  test.each([
    { text: 'g/0', order: { group: 'g', index: 0, waitsForFirst: false } },
    { text: 'pool-1.a/12', order: { group: 'pool-1.a', index: 12, waitsForFirst: false } },
    { text: 'g/3/first', order: { group: 'g', index: 3, waitsForFirst: true } },
    { text: '', order: undefined },
  ])('$text is understood', ({ text, order }) => {
    const it = deployment('d', text);

    expect(updateOrderOf(it)).toEqual(order);
    expect(isUpdateOrder(text)).toBe(true);
  });

  test.each([
    '3',
    'g/',
    '/1',
    'g/-1',
    'g/01',
    'g/1.5',
    'g/1/last',
    'g/1/first/',
    'a b/1',
    'g/12345678901',
    `${'g'.repeat(64)}/1`,
  ])('%s has no effect', (text) => {
    const it = deployment('d', text);

    expect(updateOrderOf(it)).toBeUndefined();
    expect(isUpdateOrder(text)).toBe(false);
  });
});

describe('a rollout', () => {
  interface Row {
    readonly title: string;
    readonly order?: string;
    readonly others: readonly BuiltMachineDeployment[];
    /** Those of `others` that have a Machine that is updated and available, and those that have Machines of another template. */
    readonly updated?: readonly string[];
    readonly old?: readonly string[];
    readonly hasBegun?: boolean;
    readonly waitsFor: string | undefined;
  }

  // promise: order-updates/needed-update-opens-nothing
  // promise: order-updates/paused-holds-up-those
  // promise: openstack/upgrades/paused-holds-workers-say
  test.each<Row>([
    { title: 'without an order waits for nobody', others: [deployment('a', 'g/1', rolling)], waitsFor: undefined },
    {
      title: 'waits for one that goes first and is rolled out',
      order: 'g/2',
      others: [deployment('a', 'g/1', rolling)],
      waitsFor: 'the rollout of MachineDeployment a,',
    },
    {
      title: 'waits for all, told by their index',
      order: 'g/2',
      others: [deployment('b', 'g/1', rolling), deployment('c', 'g/0', rolling), deployment('a', 'g/1', rolling)],
      waitsFor: 'the rollout of MachineDeployment c, a, b,',
    },
    {
      title: 'waits for one whose new template nobody has seen yet',
      order: 'g/2',
      others: [deployment('a', 'g/1', (d) => void (d.metadata.generation = 3))],
      waitsFor: 'MachineDeployment a,',
    },
    {
      title: 'waits for one whose machines are not available yet',
      order: 'g/2',
      others: [deployment('a', 'g/1', (d) => void (d.status = { ...d.status, availableReplicas: 0 }))],
      waitsFor: 'MachineDeployment a,',
    },
    {
      title: 'does not wait for one that was rolled out, and has lost a machine since',
      order: 'g/2',
      others: [
        deployment('a', 'g/1', (d) => {
          const conditions = [{ type: 'Progressing', status: 'True', reason: 'NewMachineSetAvailable' }];
          d.status = { ...d.status, availableReplicas: 0, conditions } as (typeof d)['status'];
        }),
      ],
      waitsFor: undefined,
    },
    {
      title: 'waits for one whose old machines are gone, and whose new ones nobody has made yet',
      order: 'g/2',
      others: [
        deployment('a', 'g/1', (d) => {
          const conditions = [{ type: 'Progressing', status: 'True', reason: 'NewMachineSetAvailable' }];
          d.status = { observedGeneration: 2, conditions } as (typeof d)['status'];
        }),
      ],
      waitsFor: 'MachineDeployment a,',
    },
    {
      title: 'waits for one that is paused, and says so',
      order: 'g/2',
      others: [deployment('a', 'g/1', (d) => (rolling(d), void (d.spec.paused = true)))],
      waitsFor: 'MachineDeployment a (paused),',
    },
    {
      title: 'waits for one that does not get on, and says so',
      order: 'g/2',
      others: [
        deployment('a', 'g/1', (d) => {
          rolling(d);
          d.status = { ...d.status, conditions: [{ type: 'Progressing', status: 'False' }] };
        }),
      ],
      waitsFor: 'MachineDeployment a (not progressing),',
    },
    {
      title: 'waits for one that is frozen, and says so',
      order: 'g/2',
      others: [
        deployment('a', 'g/1', (d) => {
          rolling(d);
          d.status = { ...d.status, conditions: [{ type: 'Frozen', status: 'True' }] };
        }),
      ],
      waitsFor: 'MachineDeployment a (frozen),',
    },
    {
      title: 'waits for none of another group, of its own index, of a larger one, without order, or that goes',
      order: 'g/2',
      others: [
        deployment('a', 'h/1', rolling),
        deployment('b', 'g/2', rolling),
        deployment('c', 'g/3', rolling),
        deployment('d', undefined, rolling),
        deployment('e', 'g/1', (d) => (rolling(d), void (d.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'))),
      ],
      waitsFor: undefined,
    },
    {
      title: 'that waits for the first waits while none is updated',
      order: 'g/2/first',
      others: [deployment('a', 'g/1', rolling)],
      old: ['a'],
      waitsFor: 'the first updated Machine of MachineDeployment a,',
    },
    {
      title: 'that waits for the first begins when one is updated, whoever has it',
      order: 'g/2/first',
      others: [deployment('a', 'g/1', rolling), deployment('b', 'g/0', rolling)],
      updated: ['b'],
      old: ['a', 'b'],
      waitsFor: undefined,
    },
    {
      title: 'that waits for the first does not begin because of one that needed no update',
      order: 'g/2/first',
      others: [deployment('a', 'g/1', rolling), deployment('b', 'g/0')],
      updated: ['b'],
      old: ['a'],
      waitsFor: 'the first updated Machine of MachineDeployment a,',
    },
    {
      title: 'that waits for the first does not begin because of one that is only made larger',
      order: 'g/2/first',
      others: [deployment('a', 'g/1', rolling), deployment('b', 'g/0', rolling)],
      updated: ['b'],
      old: ['a'],
      waitsFor: 'the first updated Machine of MachineDeployment a,',
    },
    {
      title: 'that waits for the first waits for nobody who is only made larger',
      order: 'g/2/first',
      others: [deployment('b', 'g/0', rolling)],
      updated: ['b'],
      waitsFor: undefined,
    },
    {
      title: 'that waits for the first waits for one whose old machines are gone, and whose new ones are not there yet',
      order: 'g/2/first',
      others: [deployment('a', 'g/1', rolling), deployment('b', 'g/0', rolling)],
      updated: ['b'],
      waitsFor: 'the first updated Machine of MachineDeployment a,',
    },
    {
      title: 'that waits for the first begins when all are rolled out, although they want no machine',
      order: 'g/2/first',
      others: [
        deployment('a', 'g/1', (d) => {
          d.spec.replicas = 0;
          d.status = { observedGeneration: 2 };
        }),
      ],
      waitsFor: undefined,
    },
    {
      title: 'that has begun waits for one that goes first and is rolled out now',
      order: 'g/2',
      others: [deployment('a', 'g/1', rolling)],
      old: ['a'],
      hasBegun: true,
      waitsFor:
        'MachineDeployment a, as annotation machine.sapcloud.io/update-order requires. To continue now, change the annotation.',
    },
    {
      title: 'that has begun does not wait for one that lacks machines only',
      order: 'g/2',
      others: [deployment('a', 'g/1', (d) => void (d.status = { ...d.status, availableReplicas: 0 }))],
      hasBegun: true,
      waitsFor: undefined,
    },
    {
      title: 'that waits for the first, and has begun, goes on beside the others',
      order: 'g/2/first',
      others: [deployment('a', 'g/1', rolling)],
      old: ['a'],
      updated: ['a'],
      hasBegun: true,
      waitsFor: undefined,
    },
    {
      title: 'that has yet to begin may begin at once when its order is changed',
      order: 'g/2',
      others: [deployment('a', 'g/1', rolling)],
      waitsFor: 'To start now, change the annotation.',
    },
    {
      title: 'names five, and tells how many more there are',
      order: 'g/2',
      others: ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => deployment(name, 'g/1', rolling)),
      waitsFor: 'MachineDeployment a, b, c, d, e and 2 more,',
    },
  ])('$title', ({ order, others, updated = [], old = [], hasBegun = false, waitsFor }) => {
    const it = deployment('it', order, rolling);

    const stateOf = ({ metadata: { name } }: MachineDeployment) => ({
      hasOld: old.includes(name),
      hasUpdated: updated.includes(name),
    });
    const hold = orderHold(it, [it, ...others], stateOf, hasBegun);

    expect(hold?.message ?? 'it begins').toContain(waitsFor ?? 'it begins');
  });
});

test.each([
  { earlier: deployment('a', 'g/1'), is: true },
  { earlier: deployment('a', 'g/2'), is: false },
  { earlier: deployment('a', 'g/1', (d) => void (d.metadata.namespace = 'other')), is: false },
])('$earlier.metadata.annotations of $earlier.metadata.namespace concerns g/2 of default: $is', ({ earlier, is }) => {
  expect(concerns(earlier, deployment('b', 'g/2'))).toBe(is);
});
