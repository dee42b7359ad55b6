import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { ObjectMeta } from '../../../pkg/apis/meta.ts';
import { treeOf, type TreeObjects } from '../../../pkg/fleet/tree.ts';
import { printable } from '../../printable.ts';
import { renderTree, type TreeLayout } from './render.ts';

const THEN = '2026-01-01T00:00:00Z';
const NOW_MS = Date.parse('2026-01-01T00:10:00Z');
const PLAIN: TreeLayout = { columns: undefined, hasColour: false, allNamespaces: false };

function metadataOf(name: string, owner?: string, kind = 'MachineSet'): ObjectMeta {
  const base = { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: THEN };
  const reference = { apiVersion: 'machine.sapcloud.io/v1alpha1', kind, controller: true };
  return owner === undefined
    ? base
    : { ...base, ownerReferences: [{ ...reference, name: owner, uid: `uid-${owner}` }] };
}

function deployment(change: (one: MachineDeployment) => void = () => undefined): MachineDeployment {
  const one = {
    metadata: { ...metadataOf('pool'), generation: 1, annotations: { 'deployment.kubernetes.io/revision': '2' } },
    spec: { replicas: 2, template: { spec: { class: { kind: 'MachineClass', name: 'c' } } } },
    status: { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 },
  } as MachineDeployment;
  change(one);
  return one;
}

function set(name: string, revision: string, replicas: number): MachineSet {
  const metadata = { ...metadataOf(name, 'pool', 'MachineDeployment'), annotations: {} as Record<string, string> };
  metadata.annotations['deployment.kubernetes.io/revision'] = revision;
  return { metadata, spec: { replicas }, status: { readyReplicas: replicas } };
}

function machine(name: string, owner: string | undefined, change: (one: Machine) => void = () => undefined): Machine {
  const metadata = { ...metadataOf(name, owner), labels: { node: `node-${name}` } };
  const one: Machine = {
    metadata: { ...metadata, finalizers: ['machine.sapcloud.io/machine-controller-manager'] },
    spec: { providerID: `sim:///${name}`, class: { kind: 'MachineClass', name: 'c' } },
    status: { currentStatus: { phase: 'Running', lastUpdateTime: THEN } },
  };
  change(one);
  return one;
}

function fleet(...more: Machine[]): TreeObjects {
  return {
    deployments: [deployment()],
    sets: [set('pool-old', '1', 0), set('pool-new', '2', 2)],
    machines: [machine('m-1', 'pool-new'), machine('m-2', 'pool-new'), ...more],
  };
}

const drawn = (objects: TreeObjects, layout: Partial<TreeLayout> = {}): readonly string[] =>
  renderTree(treeOf(objects, NOW_MS), NOW_MS, { ...PLAIN, ...layout });

/** A machine whose drain a budget blocks. */
const blocked = (one: Machine): void => {
  one.metadata.deletionTimestamp = THEN;
  one.status = {
    currentStatus: { phase: 'Terminating' },
    lastOperation: {
      type: 'Delete',
      state: 'Processing',
      errorCode: 'DrainBlocked',
      description:
        'Waiting for 1 pod: ns/a (PodDisruptionBudget b currently allows no eviction). Remaining pods are deleted at 2026-01-01T02:00:00Z. Initiate node drain',
      lastUpdateTime: THEN,
    },
  };
};

describe('the tree', () => {
  test('shows who owns what, the newest revision first, and no older one without machines', () => {
    expect(drawn(fleet())).toEqual([
      'NAME                                STATUS     AGE  REASON   NODE      VM',
      'MachineDeployment/pool              2/2 ready  10m',
      '└─MachineSet/pool-new (revision 2)  2/2 ready  10m',
      '  ├─Machine/m-1                     Running    10m  Running  node-m-1  sim:///m-1',
      '  └─Machine/m-2                     Running    10m  Running  node-m-2  sim:///m-2',
    ]);
  });

  test('shows the newest revision also without machines, and an older one as long as it has or wants some', () => {
    const sets = [set('pool-old', '1', 0), set('pool-older', '0', 1), set('pool-new', '2', 0)];

    const [root] = treeOf({ ...fleet(), sets, machines: [] }, NOW_MS);

    expect(root?.children.map(({ name }) => name)).toEqual(['pool-new', 'pool-older']);
  });

  test('says below an object what it waits for, and until when', () => {
    const lines = drawn(fleet(machine('m-3', 'pool-old', blocked)));

    expect(lines.at(-2)).toMatch(/^ {2}└─Machine\/m-3 +Terminating +10m +DrainBlocked +node-m-3 +sim:\/\/\/m-3$/);
    expect(lines.at(-1)).toMatch(
      /^ {6}! \(10m\) Waiting for 1 pod: ns\/a \(PodDisruptionBudget b currently allows no eviction\)\. Remaining pods are deleted at 2026-01-01T02:00:00Z\.$/,
    );
  });

  test.each<{ title: string; change: (one: MachineDeployment) => void; says: string }>([
    { title: 'paused', change: (one) => (one.spec.paused = true), says: '! Paused: nothing is rolled out' },
    { title: 'frozen', change: (one) => (one.metadata.labels = { freeze: 'True' }), says: '! Frozen, no machines' },
    {
      title: 'held',
      change: (one) =>
        (one.status = { ...one.status, conditions: [condition('ReplacementHeld', 'ZoneUnhealthy', 'One is held.')] }),
      says: '! ReplacementHeld: One is held.',
    },
    {
      title: 'in an outage',
      change: (one) =>
        (one.status = { ...one.status, conditions: [condition('APIServerUnreachable', 'Outage', 'No answer.')] }),
      says: '! APIServerUnreachable: No answer.',
    },
    {
      title: 'too slow',
      change: (one) =>
        (one.status = {
          ...one.status,
          conditions: [{ ...condition('Progressing', 'ProgressDeadlineExceeded', 'x'), status: 'False' }],
        }),
      says: '! ProgressDeadlineExceeded: machine deployment "pool" exceeded its progress deadline',
    },
    {
      title: 'rolling out',
      change: (one) => (one.status = { ...one.status, updatedReplicas: 1 }),
      says: '· RollingOut: 1 out of 2 new replicas have been updated',
    },
    {
      title: 'not complete, and all its machines have the newest template',
      change: (one) => (one.status = { ...one.status, availableReplicas: 1 }),
      says: '· Progressing: 1 of 2 replicas are available',
    },
    {
      title: 'waiting for a machine that is being deleted',
      change: (one) => (one.status = { ...one.status, replicas: 3, updatedReplicas: 3, availableReplicas: 2 }),
      says: '· Progressing: 1 replicas are pending termination',
    },
  ])('says of a MachineDeployment that it is $title', ({ change, says }) => {
    const roots = treeOf({ ...fleet(), deployments: [deployment(change)] }, NOW_MS);
    const lines = renderTree(roots, NOW_MS, PLAIN);

    expect(lines.find((line) => line.includes(says))).toMatch(/^│ /);
    expect(roots[0]?.attention).toBe(says.startsWith('!') ? 'attention' : 'progressing');
    expect(lines[1]).toContain(/\w+/.exec(says)?.[0]);
  });

  test.each<{ what: string; status: MachineDeployment['status']; reason: string }>([
    {
      what: 'a time',
      status: {
        conditions: [{ ...condition('Frozen', 'Over', 'Too many.'), lastTransitionTime: '2026-01-01T00:05:00Z' }],
      },
      reason: 'Frozen',
    },
    {
      what: 'a number',
      status: { failedMachines: [{ name: 'm-1', lastOperation: { description: 'quota: none is left' } }] },
      reason: 'MachinesFailing',
    },
  ])('shows one word as the reason, also where the line begins with $what: $reason', ({ status, reason }) => {
    const change = (one: MachineDeployment): void => void (one.status = { ...one.status, ...status });

    const [, line] = renderTree(treeOf({ ...fleet(), deployments: [deployment(change)] }, NOW_MS), NOW_MS, PLAIN);

    expect(line?.split(/\s{2,}/)).toContain(reason);
  });

  test('says of a MachineSet that it is frozen, and of a Machine that it is preserved, as long as it is', () => {
    const objects = fleet();
    const [, newest] = objects.sets;
    if (newest?.status !== undefined) newest.status.machineSetCondition = [condition('Frozen', 'Over', 'Too many.')];
    const preserve = (until: string) => (one: Machine) =>
      void (one.status = { ...one.status, currentStatus: { phase: 'Running', preserveExpiryTime: until } });
    const machines = [
      machine('m-1', 'pool-new', preserve('2026-01-01T00:09:59Z')),
      machine('m-2', 'pool-new', preserve('2026-01-02T00:00:00Z')),
    ];

    const text = drawn({ ...objects, machines }).join('\n');
    const [root] = treeOf({ ...objects, machines }, NOW_MS);

    expect(text).toContain('! Frozen: Too many.');
    expect(root?.children[0]?.children.map(({ attention }) => attention)).toEqual(['ok', 'attention']);
    expect(text).toMatch(/m-1 +Running +10m +Running/);
    expect(text).toMatch(/m-2 +Running +10m +Preserved/);
    expect(text).toMatch(/! .*It is preserved until 2026-01-02T00:00:00Z\./);
  });

  test('shows what has no owner, and of named MachineDeployments nothing else', () => {
    const objects = fleet(machine('alone', undefined), machine('orphan', 'gone'));

    const kinds = treeOf(objects, NOW_MS).map(({ kind, name }) => `${kind} ${name}`);
    expect(kinds).toEqual(['MachineDeployment pool', 'Machine alone', 'Machine orphan']);
    expect(treeOf(objects, NOW_MS, new Set(['pool'])).map(({ name }) => name)).toEqual(['pool']);
  });

  test('groups objects by their namespaces', () => {
    const other = deployment((one) => void (one.metadata = { ...one.metadata, namespace: 'a', uid: 'other' }));
    const objects = fleet();

    const lines = drawn({ ...objects, deployments: [...objects.deployments, other] }, { allNamespaces: true });

    expect(lines.filter((line) => /Namespace|Deployment/.test(line)).map((line) => line.split('  ')[0])).toEqual([
      'Namespace/a',
      '└─MachineDeployment/pool',
      'Namespace/ns',
      '└─MachineDeployment/pool',
    ]);
  });

  test('is as wide as the terminal, without losing words', () => {
    const objects = fleet(machine('m-3', 'pool-old', blocked));
    fc.assert(
      fc.property(fc.integer({ min: 66, max: 200 }), (columns) => {
        const lines = drawn(objects, { columns });
        expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
        const words = lines.join(' ').replaceAll(/[│ ]+/g, ' ');
        expect(words).toContain('currently allows no eviction). Remaining pods are deleted at 2026-01-01T02:00:00Z.');
      }),
    );
    expect(drawn(objects, { columns: 80 })[0]).not.toContain('VM');
    expect(drawn(objects, { columns: 66 })[0]).not.toContain('NODE');
    expect(drawn(objects, { columns: 120 })[0]).toContain('VM');
  });

  test('has colours only where they are wanted', () => {
    const objects = fleet(machine('m-3', 'pool-old', blocked));
    const escape = '\u001B[';

    expect(drawn(objects).join('')).not.toContain(escape);
    expect(printable(drawn(objects, { hasColour: true }).join('\n'))).toContain(`${escape}31mTerminating`);
    expect(printable(drawn(objects, { hasColour: true }).join('\n'))).toContain(`${escape}32mRunning`);
  });
});

function condition<T extends string>(
  type: T,
  reason: string,
  message: string,
): { type: T; status: 'True'; reason: string; message: string } {
  return { type, status: 'True', reason, message };
}
