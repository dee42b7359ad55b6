import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachineDeployment } from '../../../test/builders.ts';
import { MemoryDeploymentDeps } from '../../../test/machine-deployment-deps.ts';
import {
  MACHINE_FINALIZER,
  MAINTENANCE_ANNOTATION,
  MAX_REPLACEMENTS_ANNOTATION,
  REVISION_ANNOTATION,
  SCALE_DOWN_DISABLED_ANNOTATION,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { MINUTE_MS, toTimestamp } from '../../clock/clock.ts';
import { ApiError } from '../../kube/errors.ts';
import { controllerReference } from '../../reconcile/ownership.ts';
import { MachineDeploymentController } from './controller.ts';
import { GRACE_MS } from './replacements.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const KEY = 'default/deployment-1';
const HOLD = { [SCALE_DOWN_DISABLED_ANNOTATION]: 'true', [SCALE_DOWN_DISABLED_BY_US_ANNOTATION]: 'true' };
const signal = new AbortController().signal;

function deployment(change?: (d: BuiltMachineDeployment) => void): BuiltMachineDeployment {
  return machineDeployment((d) => {
    d.metadata.finalizers = [MACHINE_FINALIZER];
    d.metadata.annotations = { [REVISION_ANNOTATION]: '1' };
    change?.(d);
  });
}

/** A set of `owner`; with `old` one of an earlier template. */
function setOf(owner: BuiltMachineDeployment, name: string, old: boolean, replicas = 1): MachineSet {
  return machineSet((s) => {
    s.metadata.name = name;
    s.metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
    s.metadata.annotations = { [REVISION_ANNOTATION]: old ? '1' : '2' };
    s.spec.replicas = replicas;
    if (old) s.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-0' } };
  });
}

function machineOf(set: MachineSet, name: string) {
  return machine((m) => {
    m.metadata.name = name;
    m.metadata.labels = { pool: 'a', node: name };
    m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
  });
}

async function pass(deps: MemoryDeploymentDeps): Promise<{ result: unknown; writes: readonly string[] }> {
  const [outcome] = await Promise.allSettled([new MachineDeploymentController(deps).reconcile(KEY, signal)]);
  const writes = deps.client.writes.map(({ verb, what }) => `${verb} ${what}`);
  return { result: outcome.status === 'fulfilled' ? outcome.value : outcome.reason, writes };
}

test('a spec that cannot be obeyed changes nothing but the status', async () => {
  const deps = new MemoryDeploymentDeps(deployment((d) => void (d.spec.replicas = -1)));

  expect(await pass(deps)).toMatchObject({
    result: { kind: 'stop' },
    writes: ['patch machinedeployments/deployment-1/status'],
  });
});

test('a MachineDeployment that is being deleted creates nothing', async () => {
  const deps = new MemoryDeploymentDeps(deployment((d) => void (d.metadata.deletionTimestamp = 'now')));

  expect((await pass(deps)).writes).toEqual(['patch machinedeployments/deployment-1']);
});

test('a set that could not be created is told, and tried again', async () => {
  const deps = new MemoryDeploymentDeps(deployment());
  const refused = new ApiError(403, 'Forbidden', 'exceeded quota');
  deps.client.failures.push(refused);

  const { result, writes } = await pass(deps);

  expect(result).toBe(refused);
  expect(writes.at(-1)).toBe('patch machinedeployments/deployment-1/status');
});

describe('a rollout', () => {
  test('in which Nodes are left to be marked goes on at once', async () => {
    const owner = deployment((d) => void (d.spec.replicas = 101));
    const [now, old] = [setOf(owner, 'now', false, 0), setOf(owner, 'old', true, 101)];
    const names = Array.from({ length: 101 }, (_unused, i) => `m-${i}`);
    const deps = new MemoryDeploymentDeps(owner, {
      sets: [now, old].map((set) => noted(set, 101)),
      machines: names.map((name) => machineOf(old, name)),
      nodes: names.map((name) => node((n) => void (n.metadata.name = name))),
    });
    // The new set has grown already.
    deps.machineSets.put({
      ...noted(setOf(owner, 'now', false, 1), 101),
      metadata: { ...noted(now, 101).metadata, resourceVersion: '9' },
    });

    const { result } = await pass(deps);

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 0 });
    expect(deps.machineSets.get('default/old')?.spec.replicas).toBe(101);
    expect(deps.client.writes.filter(({ body }) => JSON.stringify(body).includes('"spec":{"replicas'))).toEqual([]);
  });

  test('tells of a machine in maintenance that holds it up', async () => {
    const owner = deployment((d) => {
      d.spec.replicas = 2;
      d.spec.strategy.rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
    });
    const [now, old] = [setOf(owner, 'now', false, 1), setOf(owner, 'old', true, 2)];
    for (const { metadata } of [now, old]) metadata.uid = metadata.name;
    const away = machineOf(old, 'm-3');
    away.metadata.annotations = { [MAINTENANCE_ANNOTATION]: 'true' };
    const machines = [machineOf(now, 'm-1'), machineOf(old, 'm-2'), away];
    for (const { metadata } of machines) metadata.uid = metadata.name;
    const deps = new MemoryDeploymentDeps(owner, { sets: [now, old].map((set) => noted(set, 2)), machines });

    await pass(deps);

    expect(JSON.stringify(deps.client.writes.at(-1)?.body)).toMatch(/"WaitingForMaintenance","message":"[^"]* m-3\./);
  });

  test('looks at its deadline by itself', async () => {
    const owner = deployment((d) => {
      d.spec.progressDeadlineSeconds = 60;
      d.spec.replicas = 2;
    });
    const [now, old] = [setOf(owner, 'now', false, 1), setOf(owner, 'old', true, 2)];
    const deps = new MemoryDeploymentDeps(owner, {
      sets: [noted(now, 2), noted(old, 2)],
      machines: [machineOf(old, 'm-1'), machineOf(old, 'm-2')],
    });
    const since = toTimestamp(deps.clock.now());
    const progressing = {
      type: 'Progressing',
      status: 'True',
      reason: 'NewMachineSetCreated',
      lastUpdateTime: since,
    } as const;
    deps.machineDeployments.put({
      ...owner,
      metadata: { ...owner.metadata, resourceVersion: '2' },
      status: { ...owner.status, conditions: [progressing] },
    });
    deps.clock.advance(30_000);

    const { result } = await pass(deps);

    expect(result).toMatchObject({ kind: 'requeue', afterMs: 31_000 });
  });
});

test('the Node of a Machine that came in place of another is kept from the autoscaler, and let go some time after', async () => {
  const owner = deployment((d) => {
    d.metadata.annotations[REVISION_ANNOTATION] = '2';
    d.status = { replicas: 2, updatedReplicas: 2, availableReplicas: 2, observedGeneration: 1 };
    d.spec.replicas = 2;
  });
  const set = noted(setOf(owner, 'now', false, 2), 2);
  const [old, other, come] = ['old', 'other', 'come'].map((name) => machineOf(set, name));
  if (old === undefined || other === undefined || come === undefined) throw new Error('three were asked for');
  for (const { metadata } of [old, other, come]) metadata.uid = metadata.name;
  old.metadata.deletionTimestamp = come.metadata.creationTimestamp = '2026-01-01T01:00:00Z';
  const nodes = [old, other, come].map(({ metadata }) => node((n) => void (n.metadata.name = metadata.name)));
  const deps = new MemoryDeploymentDeps(owner, { sets: [set], machines: [old, other, come], nodes });
  deps.holdsScaleDownDuringRollout = true;
  const controller = new MachineDeploymentController(deps);

  await controller.reconcile(KEY, signal);
  expect(deps.targetClient.writes).toMatchObject([{ what: 'nodes/come', body: { metadata: { annotations: HOLD } } }]);

  const held = node((n) => Object.assign(n.metadata, { name: 'come', resourceVersion: '2', annotations: HOLD }));
  deps.nodes.put(held);
  deps.machines.remove('default/old');
  await controller.reconcile(KEY, signal);
  deps.clock.advance(MINUTE_MS);
  expect(await controller.reconcile(KEY, signal)).toMatchObject({ afterMs: GRACE_MS - MINUTE_MS });
  expect(deps.targetClient.writes).toHaveLength(1);

  deps.clock.advance(GRACE_MS - MINUTE_MS);
  await controller.reconcile(KEY, signal);
  const none = Object.fromEntries(Object.keys(HOLD).map((key) => [key, null]));
  expect(deps.targetClient.writes[1]).toMatchObject({ what: 'nodes/come', body: { metadata: { annotations: none } } });
});

/** The set, as it was told of the present size. */
function noted(set: MachineSet, replicas: number): MachineSet {
  const annotations = {
    ...set.metadata.annotations,
    'deployment.kubernetes.io/desired-replicas': String(replicas),
    'deployment.kubernetes.io/max-replicas': String(replicas + 1),
  };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

test('annotations that mean nothing are one condition and one Event, for as long as they stand there', async () => {
  const wrong = { [MAX_REPLACEMENTS_ANNOTATION]: 'many', [UPDATE_ORDER_ANNOTATION]: 'first' };
  const annotated = (status: BuiltMachineDeployment['status'] = {}): MemoryDeploymentDeps =>
    new MemoryDeploymentDeps(
      deployment((d) => {
        Object.assign(d.metadata.annotations, wrong);
        d.status = status;
      }),
    );
  const deps = annotated();
  await pass(deps);
  const written = deps.client.writes.at(-1)?.body as BuiltMachineDeployment | undefined;
  const again = annotated(written?.status);
  await pass(again);

  expect(written?.status.conditions).toContainEqual(
    expect.objectContaining({
      type: 'InvalidAnnotation',
      status: 'True',
      message: expect.stringMatching(/update-order .*"first".*max-replacements .*"many"/),
    }),
  );
  expect(deps.events).toContain('InvalidAnnotation');
  expect(again.events).not.toContain('InvalidAnnotation');
});
