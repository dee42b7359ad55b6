import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import type { Pod } from '../apis/wire.ts';
import type { PodRule } from './drain.ts';
import { claimsOf, graceMsOf, isDrained, planDrain, toleratesBarrier, turnsOf } from './pods.ts';

function pod(name: string, change: (pod: Pod) => void = () => undefined): Pod {
  const made: Pod = {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { containers: [] },
  };
  change(made);
  return made;
}

const ownedBy =
  (kind: string, controller = true) =>
  (p: Pod) => {
    p.metadata.ownerReferences = [{ apiVersion: 'apps/v1', kind, name: 'owner', uid: 'o', controller }];
  };
const withClaims =
  (...claims: string[]) =>
  (p: Pod) => {
    p.spec!.volumes = claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
  };

const withPriority = (priority: number | undefined) => (p: Pod) => {
  withClaims('data')(p);
  if (priority !== undefined) p.spec!.priority = priority;
};

describe('isDrained', () => {
  test.each([
    { what: 'an unmanaged pod', change: () => undefined, want: true },
    { what: 'a pod of a ReplicaSet', change: ownedBy('ReplicaSet'), want: true },
    { what: 'a pod of a DaemonSet', change: ownedBy('DaemonSet'), want: false },
    { what: 'a pod that a DaemonSet owns without controlling it', change: ownedBy('DaemonSet', false), want: true },
    {
      what: 'a mirror pod',
      change: (p: Pod) => {
        p.metadata.annotations = { 'kubernetes.io/config.mirror': '' };
      },
      want: false,
    },
    {
      what: 'a finished pod',
      change: (p: Pod) => {
        p.status = { phase: 'Succeeded' };
      },
      want: true,
    },
    {
      what: 'a terminating pod',
      change: (p: Pod) => {
        p.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      },
      want: true,
    },
    {
      what: 'a pod with an emptyDir',
      change: (p: Pod) => {
        p.spec!.volumes = [{ name: 'scratch', emptyDir: {} }];
      },
      want: true,
    },
  ])('$what: $want', ({ change, want }) => {
    expect(isDrained(pod('p', change))).toBe(want);
  });
});

describe('planDrain', () => {
  test('sends pods with claims away one after the other, by falling priority, then by name', () => {
    const pods = [
      pod('low', withPriority(-5)),
      pod('b-none', withPriority(undefined)),
      pod('a-none', withPriority(undefined)),
      pod('high', withPriority(1000)),
      pod('plain'),
    ];

    const plan = planDrain(pods);

    expect(plan.serial.map((p) => p.metadata.name)).toEqual(['high', 'a-none', 'b-none', 'low']);
    expect(plan.parallel.map((p) => p.metadata.name)).toEqual(['plain']);
  });

  test('sends all away at once where nobody waits for volumes', () => {
    const pods = [pod('b', withPriority(-5)), pod('a'), pod('c', withPriority(1000))];

    const { parallel, serial } = planDrain(pods, { isVolumeBlind: true });

    expect([parallel.map((p) => p.metadata.name), serial]).toEqual([['a', 'b', 'c'], []]);
  });

  test('does not count generic ephemeral volumes as claims', () => {
    const ephemeral = pod('p', (p) => {
      p.spec!.volumes = [{ name: 'scratch', ephemeral: {} }];
    });

    expect(planDrain([ephemeral])).toEqual({ parallel: [ephemeral], serial: [] });
  });

  test('puts every pod that leaves into exactly one of the two groups', () => {
    const anyPod = fc
      .record({ name: fc.uuid(), claim: fc.boolean(), daemon: fc.boolean(), mirror: fc.boolean() })
      .map(({ name, claim, daemon, mirror }) =>
        pod(name, (p) => {
          if (claim) withClaims('data')(p);
          if (daemon) ownedBy('DaemonSet')(p);
          if (mirror) p.metadata.annotations = { 'kubernetes.io/config.mirror': 'x' };
        }),
      );

    fc.assert(
      fc.property(fc.array(anyPod), (pods) => {
        const { parallel, serial } = planDrain(turnsOf(pods).flatMap(({ leaving }) => leaving));

        const uids = [...parallel, ...serial].map((p) => p.metadata.uid);
        expect(uids.toSorted()).toEqual(
          pods
            .filter(isDrained)
            .map((p) => p.metadata.uid)
            .toSorted(),
        );
      }),
    );
  });
});

describe('toleratesBarrier', () => {
  const preserved = { taint: { key: 'node.machine.sapcloud.io/preserved', effect: 'NoSchedule' } } as const;
  const unschedulable = 'node.kubernetes.io/unschedulable';

  test.each([
    { tolerations: [], barrier: 'cordon', want: false },
    { tolerations: [{ operator: 'Exists' }], barrier: 'cordon', want: true },
    { tolerations: [{ operator: 'Exists' }], barrier: preserved, want: true },
    { tolerations: [{ key: unschedulable, operator: 'Exists' }], barrier: 'cordon', want: true },
    { tolerations: [{ key: unschedulable, operator: 'Exists' }], barrier: preserved, want: false },
    { tolerations: [{ key: unschedulable, operator: 'Exists', effect: 'NoExecute' }], barrier: 'cordon', want: false },
    { tolerations: [{ key: unschedulable, effect: 'NoSchedule' }], barrier: 'cordon', want: true },
    { tolerations: [{ key: unschedulable, value: 'yes' }], barrier: 'cordon', want: false },
  ] as const)('$tolerations against $barrier: $want', ({ tolerations, barrier, want }) => {
    const tolerant = pod('p', (p) => {
      p.spec!.tolerations = tolerations.map((toleration) => ({ ...toleration }));
    });

    expect(toleratesBarrier(tolerant, barrier)).toBe(want);
  });
});

describe('graceMsOf', () => {
  test.each([
    { spec: undefined, deletion: undefined, want: 30_000 },
    { spec: 5, deletion: undefined, want: 5_000 },
    { spec: 600, deletion: 10, want: 10_000 },
    { spec: 0, deletion: undefined, want: 0 },
  ])('spec $spec, deletion $deletion: $want ms', ({ spec, deletion, want }) => {
    const graceful = pod('p', (p) => {
      if (spec !== undefined) p.spec!.terminationGracePeriodSeconds = spec;
      if (deletion !== undefined) p.metadata.deletionGracePeriodSeconds = deletion;
    });

    expect(graceMsOf(graceful)).toBe(want);
  });
});

test('claimsOf names a claim once however often the pod mounts it', () => {
  expect(claimsOf(pod('p', withClaims('data', 'logs', 'data')))).toEqual(['data', 'logs']);
});

describe('turns', () => {
  const inTurn = (p: Pod): PodRule => {
    const { behavior, order } = p.metadata.labels ?? {};
    return behavior === 'completes' || behavior === 'stays'
      ? { behavior }
      : { behavior: 'leaves', order: Number(order ?? 0) };
  };
  const labelled = (labels: Record<string, string>) => (p: Pod) => void (p.metadata.labels = labels);
  const finished = (p: Pod) => {
    labelled({ behavior: 'completes' })(p);
    p.status = { phase: 'Succeeded' };
  };

  test('come by order; pods that complete are waited for in turn 0, and those that have completed, stay or come back in none', () => {
    const pods = [
      pod('last', labelled({ order: '10' })),
      pod('usual'),
      pod('job', labelled({ behavior: 'completes' })),
      pod('done', finished),
      pod('stays', labelled({ behavior: 'stays' })),
      pod('daemon', ownedBy('DaemonSet')),
      pod('first', labelled({ order: '-1' })),
    ];

    const turns = turnsOf(pods, inTurn);

    const names = (some: readonly Pod[]): string[] => some.map(({ metadata }) => metadata.name);
    expect(turns.map(({ leaving, completing }) => [names(leaving), names(completing)])).toEqual([
      [['first'], []],
      [['usual'], ['job']],
      [['last'], []],
    ]);
  });

  test('are none where nobody is concerned, and one without rules', () => {
    expect(turnsOf([pod('daemon', ownedBy('DaemonSet'))])).toEqual([]);
    expect(turnsOf([pod('a'), pod('b', labelled({ behavior: 'stays' }))])).toHaveLength(1);
  });
});
