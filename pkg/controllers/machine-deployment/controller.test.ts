import { describe, expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet, node, type BuiltMachineDeployment } from '../../../test/builders.ts';
import { DeploymentWorld } from '../../../test/fakes/replicas-world.ts';
import {
  MACHINE_FINALIZER,
  MAINTENANCE_ANNOTATION,
  MAX_REPLACEMENTS_ANNOTATION,
  PREFER_NO_SCHEDULE_KEY,
  REVISION_ANNOTATION,
  TEMPLATE_HASH_LABEL,
  SCALE_DOWN_DISABLED_ANNOTATION,
  SCALE_DOWN_DISABLED_BY_US_ANNOTATION,
  SCALE_UP_DISABLED_LABEL,
  TRIGGER_DELETION_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { MINUTE_MS } from '../../base/clock/clock.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { machineSets } from '../../kube/client/resource.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import type { NodeMarksChange } from '../machine-facts/rollout-marks.ts';
import { GRACE_MS } from './node-marks/replacements.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const HOLD = { [SCALE_DOWN_DISABLED_ANNOTATION]: 'true', [SCALE_DOWN_DISABLED_BY_US_ANNOTATION]: 'true' };
const IN_PLACE = {
  type: 'InPlaceUpdate',
  inPlaceUpdate: { maxSurge: 0, maxUnavailable: 1, orchestrationType: 'Manual' },
} as const;

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

test('a spec that cannot be obeyed changes nothing but the status', async () => {
  const deps = new DeploymentWorld(deployment((d) => void (d.spec.replicas = -1)));

  expect(await deps.pass()).toMatchObject({
    result: { kind: 'stop' },
    writes: ['patch machinedeployments/deployment-1/status'],
  });
});

test('a MachineDeployment that is being deleted creates nothing', async () => {
  const deps = new DeploymentWorld(deployment((d) => void (d.metadata.deletionTimestamp = 'now')));

  expect((await deps.pass()).writes).toEqual(['patch machinedeployments/deployment-1']);
});

test('a set that could not be created is told, and tried again', async () => {
  const deps = new DeploymentWorld(deployment());
  const refused = new ApiError(403, 'Forbidden', 'exceeded quota');
  deps.client.failures.push(refused);

  const { result, writes } = await deps.pass();

  expect(result).toBe(refused);
  expect(writes.at(-1)).toBe('patch machinedeployments/deployment-1/status');
});

test.each([
  { why: 'it is frozen', freeze: { freeze: 'True' }, creations: 0 },
  { why: 'that is refused', freeze: {}, creations: 1 },
])('fewer replicas are taken from the old set while the new one cannot be created, because $why', async (row) => {
  const owner = deployment((d) => {
    d.metadata.labels = row.freeze;
    d.spec.replicas = 0;
  });
  const old = noted(setOf(owner, 'old', true, 3), 3);
  const deps = new DeploymentWorld(owner, { sets: [old], machines: ['m-1', 'm-2'].map((m) => machineOf(old, m)) });
  let refused = 0;
  deps.client.create = async () => {
    refused += 1;
    return Promise.reject(new ApiError(403, 'Forbidden', 'exceeded quota'));
  };

  await deps.pass();
  await deps.pass();

  expect(deps.machineSets.get('default/old')?.spec.replicas).toBe(0);
  expect(refused).toBe(row.creations);
});

test.each([
  { type: 'RollingUpdate', why: 'it is frozen', freeze: { freeze: 'True' }, code: 403, passMs: 10_000, sizes: [1, 1] },
  { type: 'RollingUpdate', why: 'that is refused', freeze: {}, code: 403, passMs: 10_000, sizes: [1, 3] },
  { type: 'RollingUpdate', why: 'that fails', freeze: {}, code: 500, passMs: 10_000, sizes: [1, 3] },
  {
    type: 'RollingUpdate',
    why: 'a server that starts refuses it',
    freeze: {},
    code: 403,
    passMs: 1_000,
    sizes: [1, 1],
  },
  { type: 'InPlaceUpdate', why: 'that is refused', freeze: {}, code: 403, passMs: 10_000, sizes: [1, 3] },
] as const)(
  'what was taken from the old set while the new one cannot be created, because $why, comes back as $sizes ($type)',
  async (row) => {
    const owner = deployment((d) => {
      d.metadata.labels = row.freeze;
      d.spec.strategy = row.type === 'InPlaceUpdate' ? IN_PLACE : d.spec.strategy;
    });
    const old = noted(setOf(owner, 'old', true, 3), 3);
    const deps = new DeploymentWorld(owner, { sets: [old] });
    deps.client.create = async () => await Promise.reject(new ApiError(row.code, 'Refused', 'exceeded quota'));
    const sizes: unknown[] = [];

    for (const replicas of [1, 3]) {
      scaleTo(deps, replicas);
      for (let passes = 0; passes < 3; passes += 1) {
        await deps.pass();
        deps.clock.advance(row.passMs);
      }
      sizes.push(deps.machineSets.get('default/old')?.spec.replicas);
    }

    expect(sizes).toEqual(row.sizes);
  },
);

test.each([
  { what: 'waits at first', afterMs: 1_000, setMs: 0, size: 1 },
  { what: 'does not wait for long', afterMs: 10_000, setMs: 0, size: 3 },
  { what: 'waits at first, also if the clock is set forward', afterMs: 1_000, setMs: 60 * MINUTE_MS, size: 1 },
  { what: 'does not wait for a clock that was set back', afterMs: 10_000, setMs: -60 * MINUTE_MS, size: 3 },
])('what is wanted more while the new set is refused, after a missed deadline, $what', async (row) => {
  const since = '2025-12-31T23:00:00Z';
  const owner = deployment((d) => {
    d.spec.replicas = 3;
    const missed = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' } as const;
    d.status.conditions = [{ ...missed, lastTransitionTime: since, lastUpdateTime: since }];
  });
  const deps = new DeploymentWorld(owner, { sets: [noted(setOf(owner, 'old', true, 1), 1)] });
  deps.client.create = async () => await Promise.reject(new ApiError(403, 'Forbidden', 'exceeded quota'));

  await deps.pass();
  deps.clock.advance(row.afterMs);
  deps.clock.reanchor(deps.clock.now() + row.setMs);
  await deps.pass();

  expect(deps.machineSets.get('default/old')?.spec.replicas).toBe(row.size);
});

test('what is wanted more when a new set is refused again waits, although it was refused before its strategy was not supported', async () => {
  const owner = deployment((d) => void (d.spec.replicas = 1));
  const deps = new DeploymentWorld(owner, { sets: [noted(setOf(owner, 'old', true, 1), 1)] });
  deps.client.create = async () => await Promise.reject(new ApiError(403, 'Forbidden', 'exceeded quota'));
  const targets = deps.targets.all();
  const become = (spec: Partial<MachineDeployment['spec']>, version: string): void => {
    const now = deps.machineDeployments.get('default/deployment-1') ?? owner;
    const metadata = { ...now.metadata, resourceVersion: version };
    deps.machineDeployments.put({ ...now, metadata, spec: { ...now.spec, ...spec } });
  };
  await deps.pass();
  deps.targets.all = () => [];
  become({ strategy: IN_PLACE }, '8000');
  await deps.pass();
  deps.clock.advance(60 * MINUTE_MS);
  deps.targets.all = () => targets;
  become({ strategy: owner.spec.strategy, replicas: 3 }, '9000');
  const sizes: unknown[] = [];

  for (let passes = 0; passes < 2; passes += 1) {
    await deps.pass();
    sizes.push(deps.machineSets.get('default/old')?.spec.replicas);
    deps.clock.advance(10_000);
  }

  expect(sizes).toEqual([1, 3]);
});

test('why a new set cannot be created is told anew when a minute has passed, and since when it is so stays', async () => {
  const deps = new DeploymentWorld(deployment(), { sets: [noted(setOf(deployment(), 'old', true, 1), 1)] });
  let tries = 0;
  deps.client.create = async () => await Promise.reject(new ApiError(500, 'InternalError', `cause ${++tries}`));
  const told: unknown[] = [];

  for (const ms of [1_000, MINUTE_MS, 0]) {
    await deps.pass();
    const { conditions = [] } = deps.machineDeployments.get('default/deployment-1')?.status ?? {};
    told.push(conditions.find(({ type }) => type === 'Progressing'));
    deps.clock.advance(ms);
  }

  const first = told[0];
  const message = expect.stringMatching(/cause 1$/);
  expect(first).toMatchObject({ reason: 'MachineSetCreateError', message });
  expect(told[1]).toEqual(first);
  expect(told[2]).toEqual({ ...(first as object), message: expect.stringMatching(/cause 3$/) });
});

describe('while a webhook changes each new set,', () => {
  const changing = (change: (d: BuiltMachineDeployment) => void): DeploymentWorld => {
    const owner = deployment((d) => {
      d.spec.strategy.rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
      change(d);
    });
    const old = noted(setOf(owner, 'old', true, 1), owner.spec.replicas ?? 0);
    const deps = new DeploymentWorld(owner, { sets: [old], machines: [machineOf(old, 'm-1')] });
    const create = deps.client.create.bind(deps.client);
    deps.client.create = async (intent, resource, object, ...rest) => {
      const set = object as unknown as MachineSet;
      const { namespace = '', name } = set.metadata;
      if (deps.machineSets.get(`${namespace}/${name}`) !== undefined) throw new ApiError(409, 'AlreadyExists', 'there');
      const spec = { ...set.spec.template?.spec, class: { kind: 'MachineClass', name: 'by the webhook' } };
      const template = { ...set.spec.template, spec };
      const metadata = { ...set.metadata, uid: name, creationTimestamp: '2026-02-01T00:00:00Z' };
      const made = { ...object, metadata, spec: { ...set.spec, template } };
      return await create(intent, resource, made, ...rest);
    };
    return deps;
  };
  const pass = async (deps: DeploymentWorld, passes: number): Promise<void> => {
    for (let i = 0; i < passes; i += 1) {
      await deps.pass();
      deps.clock.advance(10_000);
    }
  };

  test('the set of before gets what is missing, also while it has no available machine', async () => {
    const deps = changing((d) => void (d.spec.replicas = 1));
    await pass(deps, 6);
    deps.machines.remove('default/m-1');
    scaleTo(deps, 3);

    await pass(deps, 6);

    expect(deps.events).toContain('MachineSetCreateError');
    expect(deps.machineSets.list().map(({ spec }) => spec.replicas)).toEqual([2, 1, 0]);
  });

  test('a rollback passes over the sets of all templates that it has changed, also when anything else was changed since', async () => {
    const deps = changing((d) => void (d.spec.replicas = 1));
    const change = (by: (spec: MachineDeployment['spec']) => Partial<MachineDeployment['spec']>, version: string) => {
      const now = deps.machineDeployments.get('default/deployment-1');
      if (now === undefined) throw new Error('it is there');
      const metadata = { ...now.metadata, resourceVersion: version };
      deps.machineDeployments.put({ ...now, metadata, spec: { ...now.spec, ...by(now.spec) } });
    };
    const withSpec = (spec: object, version: string): void =>
      change(({ template }) => ({ template: { ...template, spec: { ...template.spec, ...spec } } }), version);
    await pass(deps, 6);
    withSpec({ drainTimeout: '3h' }, '7000');
    await pass(deps, 6);
    withSpec({ class: { kind: 'MachineClass', name: 'class-3' } }, '8000');
    await pass(deps, 6);
    const copies = deps.machineSets.list().length - 1;
    change(() => ({ rollbackTo: { revision: 0 } }), '9000');

    await pass(deps, 2);

    expect(copies).toBe(6);
    const { spec } = deps.machineDeployments.get('default/deployment-1') ?? {};
    expect(spec?.template.spec?.class?.name).toBe('class-0');
  });

  test.each([{ revision: 0 }, { revision: 1 }])(
    'a rollback to $revision goes to the template of before',
    async (row) => {
      const deps = changing((d) => void (d.spec.replicas = 1));
      await pass(deps, 6);
      const now = deps.machineDeployments.get('default/deployment-1');
      if (now === undefined) throw new Error('it is there');
      const metadata = { ...now.metadata, resourceVersion: '9000' };
      deps.machineDeployments.put({ ...now, metadata, spec: { ...now.spec, rollbackTo: row } });

      await pass(deps, 2);

      const { spec } = deps.machineDeployments.get('default/deployment-1') ?? now;
      expect(spec.template.spec?.class?.name).toBe('class-0');
      expect(spec.rollbackTo).toBeUndefined();
    },
  );
});

test('in place, the newest old set may make what is missing while the new one may not be created', async () => {
  const owner = deployment((d) => {
    d.spec.replicas = 3;
    d.spec.strategy = IN_PLACE;
  });
  const sets = [noted(setOf(owner, 'old', true, 1), 3, 0), noted(setOf(owner, 'older', true, 1), 3, 0)];
  for (const [i, { metadata }] of sets.entries()) {
    const labels = { ...metadata.labels, [SCALE_UP_DISABLED_LABEL]: 'true' };
    Object.assign(metadata, { uid: metadata.name, labels, creationTimestamp: `2026-01-0${2 - i}T00:00:00Z` });
  }
  const machines = sets.map((set) => machineOf(set, `of-${set.metadata.name}`));
  const deps = new DeploymentWorld(owner, { sets, machines });
  deps.client.create = async () => await Promise.reject(new ApiError(403, 'Forbidden', 'exceeded quota'));

  for (let passes = 0; passes < 4; passes += 1) {
    await deps.pass();
    deps.clock.advance(10_000);
  }

  const shown = deps.machineSets.list().map(({ metadata: { name, labels }, spec }) => ({
    name,
    size: spec.replicas,
    isClosed: labels?.[SCALE_UP_DISABLED_LABEL] !== undefined,
  }));
  expect(shown).toEqual([
    { name: 'old', size: 2, isClosed: false },
    { name: 'older', size: 1, isClosed: true },
  ]);
});

describe('an old set that an update in place has closed', () => {
  const scene = (change: (d: BuiltMachineDeployment) => void, replicas = 3) => {
    const owner = deployment((d) => {
      d.spec.replicas = replicas;
      change(d);
    });
    const old = noted(setOf(owner, 'old', true, 2), 2);
    const labels = { ...old.metadata.labels, [SCALE_UP_DISABLED_LABEL]: 'true' };
    const closed = { ...old, metadata: { ...old.metadata, labels } };
    const deps = new DeploymentWorld(owner, { sets: [closed], machines: [machineOf(closed, 'm-1')] });
    deps.client.create = async () => await Promise.reject(new ApiError(403, 'Forbidden', 'exceeded quota'));
    const shown = () => {
      const set = deps.machineSets.get('default/old');
      return { size: set?.spec.replicas, isClosed: set?.metadata.labels?.[SCALE_UP_DISABLED_LABEL] !== undefined };
    };
    const run = async () => {
      for (let passes = 0; passes < 3; passes += 1) {
        await deps.pass();
        deps.clock.advance(10_000);
      }
      return shown();
    };
    return { deps, run };
  };

  test.each([
    {
      title: 'is paused',
      change: (d: BuiltMachineDeployment) => void (d.spec.paused = true),
      size: 3,
      isClosed: false,
    },
    { title: 'has a new set that is refused', change: () => undefined, size: 3, isClosed: false },
    {
      title: 'is updated in place, and frozen',
      change: (d: BuiltMachineDeployment) => {
        d.metadata.labels = { freeze: 'True' };
        d.spec.strategy = IN_PLACE;
      },
      size: 2,
      isClosed: true,
    },
  ])('makes what is wanted of a MachineDeployment that $title: $size', async ({ change, size, isClosed }) => {
    expect(await scene(change).run()).toEqual({ size, isClosed });
  });

  test('makes up for what it has lost, although the replicas are as before', async () => {
    expect(await scene((d) => void (d.spec.paused = true), 2).run()).toEqual({ size: 2, isClosed: false });
  });

  test('that may not be changed keeps nothing from being scaled, and is told of', async () => {
    const { deps, run } = scene((d) => void (d.spec.paused = true));
    const patch = deps.client.patch.bind(deps.client);
    deps.client.patch = async (intent, resource, ref, change, options) => {
      if (JSON.stringify(change.body).includes(SCALE_UP_DISABLED_LABEL)) throw new ApiError(422, 'Invalid', 'webhook');
      return await patch(intent, resource, ref, change, options);
    };

    expect(await run()).toEqual({ size: 3, isClosed: true });

    expect(JSON.stringify(deps.machineDeployments.list())).toContain('webhook');
  });
});

test('a set that a webhook keeps closed while an update in place is paused does not keep the controller busy', async () => {
  const owner = deployment((d) => {
    d.spec.paused = true;
    d.spec.strategy = IN_PLACE;
  });
  const old = noted(setOf(owner, 'old', true, 1), 1, 0);
  Object.assign(old.metadata.labels ?? {}, { [SCALE_UP_DISABLED_LABEL]: 'true' });
  const deps = new DeploymentWorld(owner, { sets: [old], machines: [machineOf(old, 'm-1')] });
  const patch = deps.client.patch.bind(deps.client);
  let refused = 0;
  deps.client.patch = async (intent, resource, ref, change, options) => {
    const isOpening = JSON.stringify(change.body).includes(SCALE_UP_DISABLED_LABEL);
    refused += Number(isOpening);
    return await patch(intent, resource, ref, isOpening ? { ...change, body: {} } : change, options);
  };

  const results = [await deps.reconcile(), await deps.reconcile()];

  expect(refused).toBeGreaterThan(0);
  expect(results).not.toContainEqual(expect.objectContaining({ kind: 'requeue', afterMs: 0 }));
});

test('a new set without machines makes what a closed old one has lost where a strategy is not supported, and then nothing is written', async () => {
  const owner = deployment((d) => {
    d.metadata.annotations[REVISION_ANNOTATION] = '2';
    d.spec.replicas = 4;
    d.spec.strategy = IN_PLACE;
  });
  const sets = [noted(setOf(owner, 'now', false, 0), 4, 0), noted(setOf(owner, 'old', true, 4), 4, 0)];
  for (const { metadata } of sets) metadata.uid = metadata.name;
  Object.assign(sets[1]?.metadata.labels ?? {}, { [SCALE_UP_DISABLED_LABEL]: 'true' });
  const machines = ['m-1', 'm-2', 'm-3'].map((name) => machineOf(sets[1]!, name));
  const deps = new DeploymentWorld(owner, { sets, machines });
  deps.targets.all = () => [];

  const sizes = await settledSizesOf(deps, ['now', 'old']);

  expect(sizes).toEqual([1, 3]);
});

test('while it is paused, a set without a size whose machine is going gets nothing in the place of one that has lost a machine', async () => {
  const owner = deployment((d) => {
    d.spec.replicas = 5;
    d.spec.paused = true;
    d.spec.strategy = IN_PLACE;
  });
  const sets = [noted(setOf(owner, 'old', true, 5), 5, 0), noted(setOf(owner, 'later', true, 0), 5, 0)];
  for (const { metadata } of sets) metadata.uid = metadata.name;
  Object.assign(sets[1]?.metadata.annotations ?? {}, { [REVISION_ANNOTATION]: '3' });
  const unknown = ['m-1', 'm-2', 'm-3', 'm-4'].map((name) => ({
    ...machineOf(sets[0]!, name),
    status: { currentStatus: { phase: 'Unknown' as const } },
  }));
  const going = machineOf(sets[1]!, 'm-5');
  going.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  going.metadata.finalizers = [MACHINE_FINALIZER];
  const machines: Machine[] = [...unknown, going];
  for (const { metadata } of machines) Object.assign(metadata, { uid: metadata.name });
  const deps = new DeploymentWorld(owner, { sets, machines });

  const sizes = await settledSizesOf(deps, ['old', 'later']);

  expect(sizes).toEqual([5, 0]);
});

/** What sets have when no set is written any more; fails if that does not come. */
async function settledSizesOf(deps: DeploymentWorld, names: readonly string[]): Promise<readonly unknown[]> {
  const written: number[] = [];
  for (let passes = 0; passes < 12; passes += 1) {
    const { writes } = await deps.pass();
    written.push(writes.filter((write) => write.includes(' machinesets/')).length);
    deps.clock.advance(1_000);
  }
  // Those of all passes so far.
  expect(written.at(-1)).toBe(written.at(-6));
  return names.map((name) => deps.machineSets.get(`default/${name}`)?.spec.replicas);
}

test('that a strategy is not supported stays told while fewer replicas are obeyed', async () => {
  const owner = deployment((d) => {
    d.spec.replicas = 6;
    d.spec.strategy = IN_PLACE;
  });
  const deps = new DeploymentWorld(owner, { sets: [noted(setOf(owner, 'old', true, 6), 6)] });
  deps.targets.all = () => [];
  await deps.pass();
  scaleTo(deps, 5);

  const told: unknown[] = [];
  for (let passes = 0; passes < 3; passes += 1) {
    deps.clock.advance(1_000);
    await deps.pass();
    const { conditions = [] } = deps.machineDeployments.get('default/deployment-1')?.status ?? {};
    told.push(conditions.find(({ type }) => type === 'InvalidSpec')?.reason);
  }

  expect(deps.machineSets.get('default/old')?.spec.replicas).toBe(5);
  expect(told).toEqual(Array(3).fill('StrategyNotSupported'));
  expect(deps.events.filter((reason) => reason === 'InvalidSpec')).toHaveLength(1);
});

test('of several sets the newest makes what is wanted where a strategy is not supported', async () => {
  const owner = deployment((d) => {
    d.spec.replicas = 6;
    d.spec.strategy = IN_PLACE;
  });
  const sets = ['old', 'older'].map((name, i) => {
    const set = noted(setOf(owner, name, true, 2), 4);
    return { ...set, metadata: { ...set.metadata, uid: name, creationTimestamp: `2026-01-0${2 - i}T00:00:00Z` } };
  });
  const machines = sets.flatMap((set) => ['m', 'n'].map((of) => machineOf(set, `${of}-of-${set.metadata.name}`)));
  const deps = new DeploymentWorld(owner, { sets, machines });
  deps.targets.all = () => [];

  await deps.pass();
  await deps.pass();

  expect(deps.machineSets.list().map(({ metadata: { name }, spec }) => [name, spec.replicas])).toEqual([
    ['old', 4],
    ['older', 2],
  ]);
});

test.each([
  { what: 'more replicas', replicas: 6, named: {}, sizes: [4, 2] },
  { what: 'fewer replicas', replicas: 3, named: {}, sizes: [2, 1] },
  { what: 'fewer replicas, without a surge,', replicas: 3, named: {}, maxSurge: 1, sizes: [2, 1] },
  { what: 'the loss of a machine that the old one does not replace', replicas: 4, lost: true, sizes: [3, 1] },
  {
    what: 'a machine that an autoscaler has chosen, and that is replaced',
    replicas: 4,
    named: { [TRIGGER_DELETION_ANNOTATION]: 'of-old~2026-01-01T00:00:00Z' },
    sizes: [3, 1],
  },
])('where a strategy is not supported, the new set and an old one obey $what', async (row) => {
  const { replicas, named = {}, maxSurge = 0, lost = false, sizes } = row;
  const owner = deployment((d) => {
    Object.assign(d.metadata.annotations, named, { [REVISION_ANNOTATION]: '2' });
    d.spec.replicas = replicas;
    d.spec.strategy = { ...IN_PLACE, inPlaceUpdate: { maxSurge, maxUnavailable: 1, orchestrationType: 'Auto' } };
  });
  const sets = [noted(setOf(owner, 'now', false, 2), 4, 0), noted(setOf(owner, 'old', true, 2), 4, 0)];
  for (const { metadata } of sets) metadata.uid = metadata.name;
  const machines = sets.flatMap((set) => ['of', 'also-of'].map((of) => machineOf(set, `${of}-${set.metadata.name}`)));
  for (const { metadata } of machines) metadata.uid = metadata.name;
  if (lost) Object.assign(sets[1]?.metadata.labels ?? {}, { [SCALE_UP_DISABLED_LABEL]: 'true' });
  const deps = new DeploymentWorld(owner, { sets, machines: lost ? machines.slice(0, -1) : machines });
  deps.targets.all = () => [];

  for (let passes = 0; passes < 4; passes += 1) {
    await deps.pass();
    // Its set has deleted it.
    if (!lost && deps.machineSets.get('default/old')?.spec.replicas === 1) deps.machines.remove('default/of-old');
  }

  expect(['now', 'old'].map((name) => deps.machineSets.get(`default/${name}`)?.spec.replicas)).toEqual(sizes);
});

test('what is refused is told, with the state of everything else, as a spec that is not obeyed', async () => {
  const owner = deployment((d) => {
    d.metadata.generation = 2;
    d.spec.replicas = 2;
  });
  const deps = new DeploymentWorld(owner, { sets: [setOf(owner, 'now', false, 1)] });
  const refused = new ApiError(403, 'Forbidden', 'the set is protected');
  deps.client.failures.push(refused);

  const { result, writes } = await deps.pass();

  expect(result).toBe(refused);
  expect(writes).toEqual(['patch machinesets/now', 'patch machinedeployments/deployment-1/status']);
  const status = deps.machineDeployments.get('default/deployment-1')?.status;
  expect(status).toMatchObject({ observedGeneration: 1, availableReplicas: 0, unavailableReplicas: 1 });
  expect(status?.conditions).toContainEqual(
    expect.objectContaining({
      type: 'ReplicaFailure',
      reason: 'ChangeRefused',
      message: 'A change of machinesets/now is refused, and retried: the set is protected',
    }),
  );
  expect(deps.events).toEqual(['ChangeRefused']);

  deps.clock.advance(1_000);
  await deps.pass();
  expect(deps.machineDeployments.get('default/deployment-1')?.status).toMatchObject({ observedGeneration: 2 });
  expect(JSON.stringify(deps.machineDeployments.get('default/deployment-1')?.status)).not.toContain('ChangeRefused');
});

describe('a rollout', () => {
  test('in which Nodes are left to be marked goes on at once', async () => {
    const owner = deployment((d) => void (d.spec.replicas = 101));
    const [now, old] = [setOf(owner, 'now', false, 0), setOf(owner, 'old', true, 101)];
    const names = Array.from({ length: 101 }, (_unused, i) => `m-${i}`);
    const deps = new DeploymentWorld(owner, {
      sets: [now, old].map((set) => noted(set, 101)),
      machines: names.map((name) => machineOf(old, name)),
      nodes: names.map((name) => node((n) => void (n.metadata.name = name))),
    });
    // The new set has grown already.
    deps.machineSets.put({
      ...noted(setOf(owner, 'now', false, 1), 101),
      metadata: { ...noted(now, 101).metadata, resourceVersion: '9' },
    });

    const { result } = await deps.pass();

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
    const deps = new DeploymentWorld(owner, { sets: [now, old].map((set) => noted(set, 2)), machines });

    await deps.reconcile();

    expect(JSON.stringify(deps.client.writes.at(-1)?.body)).toMatch(/"WaitingForMaintenance","message":"[^"]* m-3\./);
  });

  test.each([
    { code: 403, reason: 'Forbidden', told: [1, 1] },
    { code: 500, reason: 'InternalError', told: [0, 1] },
  ])('that is over, and of which a set may not lose its note ($code), is told', async (row) => {
    const owner = deployment((d) => void (d.metadata.annotations[REVISION_ANNOTATION] = '2'));
    const labels = { pool: 'a', [TEMPLATE_HASH_LABEL]: 'now' };
    const { spec, ...set } = tainted(noted(setOf(owner, 'now', false, 1), 1));
    const template = { ...spec.template, metadata: { labels } };
    const now = { ...set, spec: { ...spec, selector: { matchLabels: labels }, template } };
    const deps = new DeploymentWorld(owner, { sets: [now] });
    const { client } = deps;
    const patch = client.patch.bind(client);
    client.patch = async (intent, resource, ref, ...rest) => {
      const isOfSet = ref.name === 'now';
      return isOfSet ? Promise.reject(new ApiError(row.code, row.reason, 'no')) : patch(intent, resource, ref, ...rest);
    };
    const told: number[] = [];

    for (let passes = 0; passes < 2; passes += 1) {
      expect((await deps.pass()).result).toMatchObject({ kind: 'requeue' });
      told.push(deps.events.filter((reason) => reason === 'ChangeRefused').length);
      deps.clock.advance(10_000);
    }

    expect(told).toEqual(row.told);
    const status = deps.machineDeployments.get('default/deployment-1')?.status;
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'ReplicaFailure', reason: 'ChangeRefused' }),
    );
    expect(status?.observedGeneration).toBe(owner.metadata.generation ?? 0);
  });

  test('of which a set may not be changed misses its deadline', async () => {
    const owner = deployment((d) => {
      d.metadata.annotations[REVISION_ANNOTATION] = '2';
      d.spec.progressDeadlineSeconds = 60;
      d.spec.replicas = 2;
      d.spec.strategy.rollingUpdate = { maxSurge: 0, maxUnavailable: 1 };
    });
    const labelsOf = (set: string) => ({ pool: 'a', [TEMPLATE_HASH_LABEL]: set });
    const sets = [setOf(owner, 'now', false, 0), setOf(owner, 'old', true, 2)].map((set) => {
      const labels = labelsOf(set.metadata.name);
      const template = { ...set.spec.template, metadata: { labels } };
      return tainted(noted({ ...set, spec: { ...set.spec, selector: { matchLabels: labels }, template } }, 2));
    });
    const machines = ['m-1', 'm-2'].map((name) => machineOf(setOf(owner, 'old', true), name));
    for (const { metadata } of machines) metadata.labels = labelsOf('old');
    const deps = new DeploymentWorld(owner, { sets, machines });
    const told: unknown[] = [];
    for (let passes = 0; passes < 3; passes += 1) {
      deps.client.failures.push(new ApiError(403, 'Forbidden', 'the set is protected'));
      await deps.pass();
      const { conditions = [] } = deps.machineDeployments.get('default/deployment-1')?.status ?? {};
      told.push(conditions.find(({ type }) => type === 'Progressing')?.reason);
      deps.clock.advance(61_000);
    }

    expect(deps.machineSets.get('default/old')?.spec.replicas).toBe(2);
    expect(told.at(-1)).toBe('ProgressDeadlineExceeded');
  });

  test('looks at its deadline by itself', async () => {
    const owner = deployment((d) => {
      d.spec.progressDeadlineSeconds = 60;
      d.spec.replicas = 2;
    });
    const [now, old] = [setOf(owner, 'now', false, 1), setOf(owner, 'old', true, 2)];
    const deps = new DeploymentWorld(owner, {
      sets: [noted(now, 2), tainted(noted(old, 2))],
      machines: [machineOf(old, 'm-1'), machineOf(old, 'm-2')],
    });
    await deps.reconcile();
    deps.clock.advance(30_000);

    const { result } = await deps.pass();

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
  const deps = new DeploymentWorld(owner, { sets: [set], machines: [old, other, come], nodes });
  deps.holdsScaleDownDuringRollout = true;

  await deps.reconcile();
  expect(deps.targetClient.writes).toMatchObject([{ what: 'nodes/come', body: { metadata: { annotations: HOLD } } }]);

  const held = node((n) => Object.assign(n.metadata, { name: 'come', resourceVersion: '2', annotations: HOLD }));
  deps.nodes.put(held);
  deps.machines.remove('default/old');
  await deps.reconcile();
  deps.clock.advance(MINUTE_MS);
  expect(await deps.reconcile()).toMatchObject({ afterMs: GRACE_MS - MINUTE_MS });
  expect(deps.targetClient.writes).toHaveLength(1);

  deps.clock.advance(GRACE_MS - MINUTE_MS);
  await deps.reconcile();
  const none = Object.fromEntries(Object.keys(HOLD).map((key) => [key, null]));
  expect(deps.targetClient.writes[1]).toMatchObject({ what: 'nodes/come', body: { metadata: { annotations: none } } });
});

function scaleTo(deps: DeploymentWorld, replicas: number): void {
  const now = deps.machineDeployments.get('default/deployment-1');
  if (now === undefined) throw new Error('it is there');
  const resourceVersion = String(Number(now.metadata.resourceVersion) + 1);
  deps.machineDeployments.put({
    ...now,
    metadata: { ...now.metadata, resourceVersion },
    spec: { ...now.spec, replicas },
  });
}

/** A set on whose Nodes the taint of a rollout is already. */
function tainted(set: MachineSet): MachineSet {
  const annotations = { ...set.metadata.annotations, [PREFER_NO_SCHEDULE_KEY]: 'True' };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

/** The set, as it was told of the present size. */
function noted(set: MachineSet, replicas: number, surge = 1): MachineSet {
  const annotations = {
    ...set.metadata.annotations,
    'deployment.kubernetes.io/desired-replicas': String(replicas),
    'deployment.kubernetes.io/max-replicas': String(replicas + surge),
  };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

test('annotations that mean nothing are one condition and one Event, for as long as they stand there', async () => {
  const wrong = { [MAX_REPLACEMENTS_ANNOTATION]: 'many', [UPDATE_ORDER_ANNOTATION]: 'first' };
  const annotated = (status: BuiltMachineDeployment['status'] = {}): DeploymentWorld =>
    new DeploymentWorld(
      deployment((d) => {
        Object.assign(d.metadata.annotations, wrong);
        d.status = status;
      }),
    );
  const deps = annotated();
  await deps.reconcile();
  const written = deps.client.writes.at(-1)?.body as BuiltMachineDeployment | undefined;
  const again = annotated(written?.status);
  await again.reconcile();

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

/** The sizes that were written to sets; `noted` for one that was told of the replicas alone. */
function sizesIn(deps: DeploymentWorld): readonly string[] {
  return deps.client.writes
    .filter(({ what }) => what.startsWith('machinesets'))
    .map(({ verb, what, body }) => ({ name: verb === 'create' ? 'made' : what, body: body as Partial<MachineSet> }))
    .filter(({ body }) => JSON.stringify(body).includes('desired-replicas') || body.spec?.replicas !== undefined)
    .map(({ name, body }) => `${name} ${body.spec?.replicas ?? 'noted'}`);
}

describe('a rollout whose turn has not come', () => {
  const waiting = (change?: (d: BuiltMachineDeployment) => void): DeploymentWorld => {
    const owner = deployment((d) => {
      d.spec.replicas = 2;
      d.metadata.annotations[UPDATE_ORDER_ANNOTATION] = 'pool/2';
      change?.(d);
    });
    const first = deployment((d) => {
      Object.assign(d.metadata, { name: 'first', uid: 'first' });
      d.metadata.annotations[UPDATE_ORDER_ANNOTATION] = 'pool/1';
      d.status = {};
    });
    const sets = [{ ...noted(setOf(owner, 'old', true, 2), 2) }, { ...noted(setOf(first, 'its-old', true, 1), 1) }].map(
      (set) => ({ ...set, metadata: { ...set.metadata, uid: set.metadata.name } }),
    );
    const machines = sets.map((set) => machineOf(set, `of-${set.metadata.name}`));
    const nodes = machines.map(({ metadata: { name } }) =>
      node((n) => Object.assign(n.metadata, { name, annotations: HOLD })),
    );
    const deps = new DeploymentWorld(owner, { sets, machines, nodes });
    deps.machineDeployments.put(first);
    deps.holdsScaleDownDuringRollout = true;
    return deps;
  };

  test('makes no set, and says whom it waits for', async () => {
    const deps = waiting();

    await deps.reconcile();

    expect(sizesIn(deps)).toEqual([]);
    expect(JSON.stringify(deps.client.writes.at(-1)?.body)).toMatch(/"WaitingForUpdateOrder","message":"[^"]*first/);
  });

  test('keeps no Node from the autoscaler that has joined meanwhile', async () => {
    const deps = waiting();

    await deps.reconcile();

    expect(deps.targetClient.writes.map(({ what }) => what)).toEqual(['nodes/of-old']);
  });

  test('keeps room for its rollback by a set of no Machines', async () => {
    const deps = waiting((d) => void (d.spec.rollbackTo = { revision: 1 }));

    await deps.reconcile();

    expect(sizesIn(deps)).toEqual(['made 0']);
  });

  test('gives the Node back that was updated to a template of before, and its Machine stays where it is', async () => {
    const deps = waiting((d) => void (d.spec.strategy = IN_PLACE));
    const set = deps.machineSets.get('default/old');
    if (set === undefined) throw new Error('it is there');
    deps.machineSets.put({ ...noted(set, 2, 0), metadata: { ...noted(set, 2, 0).metadata, resourceVersion: '2' } });
    const its = deps.machines.get('default/of-old');
    if (its === undefined) throw new Error('it is there');
    deps.machines.put({ ...updated(its), metadata: { ...its.metadata, resourceVersion: '2' } });
    const itsNode = updatedNode('of-old');
    deps.nodes.put({ ...itsNode, metadata: { ...itsNode.metadata, resourceVersion: '2' } });

    await deps.reconcile();

    expect(machinesIn(deps)).toEqual([]);
    expect(nodesFreedIn(deps)).toEqual(['nodes/of-old']);
  });

  test('is scaled all the same', async () => {
    const deps = waiting((d) => void (d.spec.replicas = 3));

    await deps.reconcile();

    expect(sizesIn(deps)).toEqual(['machinesets/old 3']);
  });
});

describe('a pass', () => {
  const rolling = (change?: (d: BuiltMachineDeployment) => void, sizes = [1, 2], surge = 2) => {
    const owner = deployment((d) => {
      d.spec.replicas = 3;
      d.spec.strategy.rollingUpdate = { maxSurge: 2, maxUnavailable: 0 };
      change?.(d);
    });
    const sets = [setOf(owner, 'now', false, sizes[0]), setOf(owner, 'old', true, sizes[1])]
      .map((set) => noted(set, 3, surge))
      .map((set) => ({ ...set, metadata: { ...set.metadata, uid: set.metadata.name } }));
    const machines = sets.flatMap((set, i) =>
      Array.from({ length: sizes[i] ?? 0 }, (_unused, k) => machineOf(set, `${set.metadata.name}-${k}`)),
    );
    for (const { metadata } of machines) metadata.uid = metadata.name;
    return new DeploymentWorld(owner, { sets, machines });
  };

  test('that scales leaves the rollout to the next: its sizes are those of a moment before', async () => {
    const deps = rolling((d) => void (d.spec.replicas = 4));

    await deps.reconcile();

    expect(sizesIn(deps).toSorted()).toEqual(['machinesets/now 4', 'machinesets/old noted']);
  });

  test('that scales nothing, because it is frozen, goes on with what only makes less', async () => {
    const frozen = (d: BuiltMachineDeployment): void => {
      d.metadata.labels['freeze'] = 'True';
      d.spec.replicas = 4;
      d.spec.strategy.rollingUpdate = { maxSurge: 2, maxUnavailable: 2 };
    };
    const deps = rolling(frozen, [0, 3]);

    await deps.reconcile();

    expect(sizesIn(deps).filter((size) => size.includes('old'))).not.toEqual([]);
  });

  test('that scales while it is frozen goes on with nothing', async () => {
    const frozen = (d: BuiltMachineDeployment): void => {
      d.metadata.labels['freeze'] = 'True';
      d.spec.replicas = 1;
      d.spec.strategy.rollingUpdate = { maxSurge: 1, maxUnavailable: 1 };
    };
    const deps = rolling(frozen, [1, 2]);

    await deps.reconcile();

    expect(sizesIn(deps)).toEqual(['machinesets/now noted', 'machinesets/old 1']);
  });

  test('lets an old set go without the machines that an autoscaler has chosen, although its replicas are as before', async () => {
    const time = '2026-01-01T00:00:00Z';
    const chosen = (d: BuiltMachineDeployment): void => {
      d.metadata.annotations['node.machine.sapcloud.io/trigger-deletion-by-mcm'] = `old-0~${time}`;
    };
    const deps = rolling(chosen, [3, 2]);
    const its = deps.machines.get('default/old-0');
    if (its === undefined) throw new Error('it is there');
    const annotations = {
      'machinepriority.machine.sapcloud.io': '1',
      'machine.sapcloud.io/marked-for-deletion-time': time,
    };
    deps.machines.put({ ...its, metadata: { ...its.metadata, resourceVersion: '2', annotations } });

    await deps.reconcile();

    expect(sizesIn(deps)).toEqual(['machinesets/old 1']);
  });

  test('without a target cluster, where nothing can be updated in place, makes what is missing of the present template', async () => {
    const owner = deployment((d) => {
      d.spec.replicas = 2;
      const inPlaceUpdate = { maxSurge: 0, maxUnavailable: 1, orchestrationType: 'Auto' } as const;
      d.spec.strategy = { type: 'InPlaceUpdate', inPlaceUpdate };
    });
    const deps = new DeploymentWorld(owner, { sets: [noted(setOf(owner, 'now', false, 1), 2, 0)] });
    deps.targets.all = () => [];

    await deps.reconcile();

    expect(sizesIn(deps)).toEqual(['machinesets/now 2']);
    expect(deps.events).not.toContain('InvalidSpec');
  });

  test.each([
    { title: 'while it is paused', paused: true, complete: false, isGone: true },
    { title: 'when all is rolled out', paused: false, complete: true, isGone: true },
    { title: 'not before all is rolled out', paused: false, complete: false, isGone: false },
    { title: 'not while it is paused with a rollback that is asked for', paused: true, rollback: 0, isGone: false },
  ])('takes sets beyond the history limit out $title', async ({ paused, complete = true, rollback, isGone }) => {
    const owner = deployment((d) => {
      Object.assign(d.spec, { paused, replicas: 1, revisionHistoryLimit: 0 });
      if (rollback !== undefined) d.spec.rollbackTo = { revision: rollback };
      d.metadata.annotations[REVISION_ANNOTATION] = '2';
      if (!complete) d.status.availableReplicas = 0;
    });
    const [now, empty] = [noted(setOf(owner, 'now', false, 1), 1), noted(setOf(owner, 'empty', true, 0), 1)];
    const sets = [now, { ...empty, status: { replicas: 0, observedGeneration: 1 } }];
    const deps = new DeploymentWorld(owner, { sets, machines: [machineOf(now, 'm-1')] });

    await deps.reconcile();

    const gone = deps.client.writes.filter(({ verb }) => verb === 'delete').map(({ what }) => what);
    expect(gone).toEqual(isGone ? ['machinesets/empty'] : []);
  });

  test('of a paused one does not roll back, and goes on with nothing', async () => {
    const deps = rolling((d) => Object.assign(d.spec, { paused: true, rollbackTo: { revision: 1 } }), [2, 3]);

    await deps.reconcile();

    expect(sizesIn(deps)).toEqual([]);
    expect(JSON.stringify(deps.client.writes)).not.toContain('rollbackTo');
    expect(deps.events).not.toContain('DeploymentRollback');
  });

  test('of a paused one whose strategy is another ends no update in place', async () => {
    const deps = rolling((d) => void (d.spec.paused = true));
    deps.nodes.put(updatedNode('old-0'));

    await deps.reconcile();

    expect(deps.client.writes.filter(({ what }) => what.startsWith('machines/'))).toEqual([]);
  });

  test('of a paused one whose template has changed again gives the Node back that was updated, and its Machine stays', async () => {
    const owner = deployment((d) => {
      Object.assign(d.spec, { paused: true, replicas: 1, strategy: IN_PLACE });
    });
    const set = noted(setOf(owner, 'old', true, 1), 1, 0);
    const deps = new DeploymentWorld(owner, { sets: [set], machines: [updated(machineOf(set, 'old-0'))] });
    deps.nodes.put(updatedNode('old-0'));

    await deps.reconcile();

    expect(machinesIn(deps)).toEqual([]);
    expect(nodesFreedIn(deps)).toEqual(['nodes/old-0']);
  });

  test.each([
    { code: 403, reason: 'Forbidden', told: [1, 1] },
    { code: 500, reason: 'InternalError', told: [0, 1] },
  ])(
    'of a paused one whose history has an empty set that may not be deleted ($code) gives Nodes back all the same, and tells of it',
    async (row) => {
      const owner = deployment((d) => {
        Object.assign(d.spec, { paused: true, replicas: 1, revisionHistoryLimit: 0, strategy: IN_PLACE });
      });
      const set = noted(setOf(owner, 'old', true, 1), 1, 0);
      const history = setOf(owner, 'history', true, 0);
      Object.assign(history.metadata, { uid: 'history' });
      Object.assign(history.status ?? {}, { replicas: 0 });
      const deps = new DeploymentWorld(owner, { sets: [set, history], machines: [updated(machineOf(set, 'old-0'))] });
      deps.nodes.put(updatedNode('old-0'));
      const { client } = deps;
      client.delete = async () => await Promise.reject(new ApiError(row.code, row.reason, 'the set is protected'));
      const told: number[] = [];

      for (let passes = 0; passes < 2; passes += 1) {
        await deps.reconcile();
        told.push(deps.events.filter((reason) => reason === 'ChangeRefused').length);
        deps.clock.advance(10_000);
      }

      expect(nodesFreedIn(deps)).toEqual(['nodes/old-0']);
      expect(told).toEqual(row.told);
      const status = deps.machineDeployments.get('default/deployment-1')?.status;
      expect(status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'ReplicaFailure', reason: 'ChangeRefused' }),
      );
    },
  );

  test('of one that is about to delete a set of its history, which is refused, tells of it also while a Machine is not available', async () => {
    const owner = deployment((d) => void Object.assign(d.spec, { replicas: 1, revisionHistoryLimit: 0 }));
    const labels = { pool: 'a', [TEMPLATE_HASH_LABEL]: 'now' };
    const { spec, ...set } = noted(setOf(owner, 'now', false, 1), 1);
    const now = {
      ...set,
      spec: { ...spec, selector: { matchLabels: labels }, template: { ...spec.template, metadata: { labels } } },
    };
    const history = setOf(owner, 'history', true, 0);
    Object.assign(history.metadata, { uid: 'history' });
    Object.assign(history.status ?? {}, { replicas: 0 });
    const deps = new DeploymentWorld(owner, { sets: [now, history], machines: [machineOf(now, 'm-1')] });
    deps.client.delete = async () => await Promise.reject(new ApiError(403, 'Forbidden', 'the set is protected'));
    const shown: unknown[] = [];

    for (let passes = 0; passes < 8; passes += 1) {
      const one = deps.machines.list()[0] as Machine;
      const currentStatus = { ...one.status?.currentStatus, phase: passes < 4 ? 'Running' : 'Unknown' } as const;
      const metadata = { ...one.metadata, resourceVersion: `${passes + 100}` };
      deps.machines.put({ ...one, metadata, status: { ...one.status, currentStatus } });
      await deps.pass();
      deps.clock.advance(10_000);
      const conditions = deps.machineDeployments.get('default/deployment-1')?.status?.conditions ?? [];
      shown.push(conditions.find(({ type }) => type === 'ReplicaFailure')?.reason);
    }

    expect(shown.slice(2)).toEqual(Array(6).fill('ChangeRefused'));
    expect(deps.events.filter((reason) => reason === 'ChangeRefused')).toHaveLength(1);
  });

  test.each([{ paused: true }, { paused: false }])(
    'ends updates in place that have begun (paused: $paused), after the sizes are as asked for',
    async ({ paused }) => {
      const inPlace = (replicas: number) => (d: BuiltMachineDeployment) => {
        Object.assign(d.spec, { paused, replicas });
        d.spec.strategy = IN_PLACE;
      };
      const moves = async (replicas: number): Promise<readonly string[]> => {
        const deps = rolling(inPlace(replicas), [1, 2], 0);
        const [old, its] = [deps.machineSets.get('default/old'), deps.machines.get('default/old-0')];
        if (old === undefined || its === undefined) throw new Error('both are there');
        deps.client.wrote(machineSets, tainted(old));
        deps.machines.put({ ...updated(its), metadata: { ...its.metadata, resourceVersion: '2' } });
        deps.nodes.put(updatedNode('old-0'));
        await deps.reconcile();
        return machinesIn(deps);
      };

      expect(await moves(3)).toEqual(['machines/old-0']);
      expect(await moves(2)).toEqual([]);
    },
  );

  test('with more Nodes to give back than it can write goes on at once', async () => {
    const owner = deployment((d) => void (d.spec.replicas = 101));
    owner.metadata.annotations[REVISION_ANNOTATION] = '2';
    const set = noted(setOf(owner, 'now', false, 101), 101);
    const names = Array.from({ length: 101 }, (_unused, i) => `m-${i}`);
    const nodes = names.map((name) =>
      node((n) => Object.assign(n.metadata, { name, uid: `uid-of-${name}`, annotations: HOLD })),
    );
    const machines = names.map((name) => machineOf(set, name));
    for (const { metadata } of machines) metadata.uid = metadata.name;
    const deps = new DeploymentWorld(owner, { sets: [set], machines, nodes });

    expect((await deps.pass()).result).toMatchObject({ afterMs: 0 });
    expect(deps.targetClient.writes).toHaveLength(100);
  });

  test('in which Nodes could not be given back because of an outage is repeated', async () => {
    const deps = rolling();
    const closed = new GateClosedError('outage', 'target', 'unreachable');
    deps.nodes.put(node((n) => Object.assign(n.metadata, { name: 'now-0', annotations: HOLD })));
    deps.targetClient.failures.push(closed);

    expect((await deps.pass()).result).toBe(closed);
  });

  test('before all that an autoscaler has chosen is marked makes no set smaller', async () => {
    const owner = deployment((d) => {
      d.spec.replicas = 0;
      const names = Array.from({ length: 501 }, (_unused, i) => `m-${i}~2026-01-01T00:00:00Z`);
      d.metadata.annotations['node.machine.sapcloud.io/trigger-deletion-by-mcm'] = names.join(',');
    });
    const set = noted(setOf(owner, 'now', false, 501), 501);
    const machines = Array.from({ length: 501 }, (_unused, i) => machineOf(set, `m-${i}`));
    for (const { metadata } of machines) metadata.uid = metadata.name;
    const deps = new DeploymentWorld(owner, { sets: [set], machines });

    expect((await deps.pass()).result).toMatchObject({ afterMs: 0 });
    expect(sizesIn(deps)).toEqual([]);
  });

  test('of a frozen one makes no set for its rollback', async () => {
    const owner = deployment((d) => {
      d.metadata.labels['freeze'] = 'True';
      d.spec.rollbackTo = { revision: 1 };
    });
    const deps = new DeploymentWorld(owner, { sets: [noted(setOf(owner, 'old', true, 1), 1)] });

    await deps.reconcile();

    expect(sizesIn(deps)).not.toContain('made 0');
    expect(deps.client.writes.filter(({ verb }) => verb === 'create')).toEqual([]);
  });

  test.each([
    { why: 'it is frozen', freeze: { freeze: 'True' }, revision: 0, to: 'class-9', told: [] },
    { why: 'that is refused', freeze: {}, revision: 0, to: 'class-9', told: ['MachineSetCreateError'] },
    { why: 'that is refused', freeze: {}, revision: 1, to: 'class-0', told: ['MachineSetCreateError'] },
  ])('of one whose set cannot be created, because $why, rolls back to $revision all the same', async (row) => {
    const owner = deployment((d) => {
      d.metadata.labels = row.freeze;
      d.spec.rollbackTo = { revision: row.revision };
    });
    const sets = [noted(setOf(owner, 'first', true, 0), 1), noted(setOf(owner, 'last', true, 1), 1)];
    for (const { metadata } of sets) metadata.uid = metadata.name;
    Object.assign(sets[1]?.metadata.annotations ?? {}, { [REVISION_ANNOTATION]: '2' });
    Object.assign(sets[1]?.spec.template?.spec ?? {}, { class: { kind: 'MachineClass', name: 'class-9' } });
    const deps = new DeploymentWorld(owner, { sets });
    deps.client.create = async () => await Promise.reject(new ApiError(403, 'Forbidden', 'exceeded quota'));

    expect((await deps.pass()).result).not.toBeInstanceOf(Error);

    const { spec } = deps.machineDeployments.get('default/deployment-1') ?? owner;
    expect(spec.template.spec?.class?.name).toBe(row.to);
    expect(spec.rollbackTo).toBeUndefined();
    expect(deps.events.filter((reason) => reason === 'MachineSetCreateError')).toEqual(row.told);
  });

  test('of one whose set could not be created for another reason rolls back only when that lasts', async () => {
    const owner = deployment((d) => void (d.spec.rollbackTo = { revision: 1 }));
    const deps = new DeploymentWorld(owner, { sets: [noted(setOf(owner, 'old', true, 1), 1)] });
    deps.client.create = async () => await Promise.reject(new ApiError(500, 'InternalError', 'no leader'));

    const asked: unknown[] = [];
    for (let passes = 0; passes < 2; passes += 1) {
      await deps.pass();
      asked.push(deps.machineDeployments.get('default/deployment-1')?.spec.rollbackTo);
      deps.clock.advance(10_000);
    }

    expect(asked).toEqual([{ revision: 1 }, undefined]);
  });
});

/** A Machine whose update in place has succeeded. */
function updated(its: Machine): Machine {
  const conditions = [{ type: 'InPlaceUpdate', status: 'True', reason: 'UpdateSuccessful' }];
  return { ...its, status: { ...its.status, conditions } };
}

/** The Machines that were written. */
function machinesIn(deps: DeploymentWorld): readonly string[] {
  return deps.client.writes.filter(({ what }) => what.startsWith('machines/')).map(({ what }) => what);
}

/** The Nodes that were uncordoned, and show no result any more. */
function nodesFreedIn(deps: DeploymentWorld): readonly string[] {
  return deps.targetClient.writes.flatMap(({ what, body }) => {
    const { metadata, spec } = body as NodeMarksChange;
    return metadata.labels?.[UPDATE_RESULT_LABEL] === null && spec?.unschedulable === null ? [what] : [];
  });
}

/** A Node whose update in place has succeeded. */
function updatedNode(name: string) {
  return node((n) => {
    Object.assign(n.metadata, { name, uid: `uid-of-${name}` });
    n.metadata.labels = { 'node.machine.sapcloud.io/update-result': 'successful' };
    n.status.conditions = [{ type: 'InPlaceUpdate', status: 'True', reason: 'UpdateSuccessful' }];
  });
}
