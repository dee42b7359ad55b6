import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { MachineSetSpec } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { BROKEN_OBJECTS, UNWISE_OBJECTS } from '../broken-objects.ts';
import { forCreation, machine, machineDeployment, machineSet } from '../builders.ts';
import { applyCrds } from '../env/crds.ts';
import { privateControlPlane } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { causesOf, CrdsApi, type Item } from './crds-api.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const OK = { status: 200 };

/** A change of each kind in a field that none of the broken objects is broken in. */
const UNRELATED: Readonly<Record<string, object>> = {
  Machine: { spec: { nodeConditions: 'KernelDeadlock' } },
  MachineSet: { spec: { machineClass: { name: 'other' } } },
  MachineDeployment: { spec: { paused: true } },
  MachineClass: { provider: 'other' },
};

/** Each broken object, under a name of its own. The scale subresource has always kept negative replicas out. */
const STORED = [...BROKEN_OBJECTS, ...UNWISE_OBJECTS]
  .filter(({ field }) => field !== 'spec.replicas')
  .map(({ what, object, field }, index) => ({
    what,
    field,
    kind: object.kind ?? '',
    item: { ...forCreation(object), metadata: { name: `stored-${index}` } },
    /** Without one, only metadata and status can be written. */
    hasSpec: 'spec' in object || object.kind === 'MachineClass',
  }));

const WITH_STATUS = STORED.filter(({ kind }) => kind !== 'MachineClass');
const WITH_SCALE = STORED.filter(({ kind, hasSpec }) => hasSpec && /^Machine(Set|Deployment)$/.test(kind));

/** Any of these can be what is wrong with a selector. */
const WITH_BROKEN_SELECTOR = STORED.filter(
  ({ kind, field, hasSpec }) =>
    hasSpec && /^Machine(Set|Deployment)$/.test(kind) && /^spec\.(selector|template\.metadata)/.test(field),
);

const withoutSelector = {
  ...forCreation(machineSet((s) => delete (s.spec as Partial<MachineSetSpec>).selector)),
  metadata: { name: 'without-selector' },
};
const withBadTimeout = {
  ...forCreation(machine((m) => (m.spec.drainTimeout = 'soon'))),
  metadata: { name: 'with-bad-timeout' },
};
const twiceBroken = {
  ...forCreation(
    machineDeployment((d) => {
      d.spec.strategy = {};
      d.spec.selector = { matchLabels: { pool: 'b' } };
    }),
  ),
  metadata: { name: 'twice-broken' },
};

let plane: ControlPlane;
let api: CrdsApi;

/** Stores everything under the original's CRDs, then upgrades to ours. */
beforeAll(async () => {
  plane = await privateControlPlane({ crds: 'original', controllerManager: false });
  api = new CrdsApi(plane.connection, 'default');
  await api.createAll([...STORED.map(({ item }) => item), withoutSelector, withBadTimeout, twiceBroken]);
  await applyCrds(plane.connection, 'own');
  await eventually(allAreRefused, { describe: 'the rules to be in force' });
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await plane.stop();
});

async function allAreRefused(): Promise<void> {
  for (const { item } of STORED) {
    const answer = await api.create({ ...item, metadata: { name: 'new' } }, '&dryRun=All');
    expect(answer).toMatchObject({ status: 422 });
  }
}

describe('an object that was stored before the rules', () => {
  test.each(WITH_STATUS)('$kind with $what takes a status', async ({ item }) => {
    const patched = await api.patch(item, { status: { lastOperation: { description: 'x' }, replicas: 2 } }, 'status');
    const { body } = await api.get(item);
    const replaced = await api.replace(item, body, { subresource: 'status' });

    expect([patched, replaced]).toMatchObject([OK, OK]);
  });

  test.each(WITH_SCALE)('$kind with $what can be scaled', async ({ item }) => {
    const up = await api.patch(item, { spec: { replicas: 2 } }, 'scale');
    const down = await api.patch(item, { spec: { replicas: 0 } }, 'scale');

    expect([up, down]).toMatchObject([OK, OK]);
  });

  test.each(STORED.filter(({ hasSpec }) => hasSpec))(
    '$kind with $what can change elsewhere',
    async ({ kind, item }) => {
      expect(await api.patch(item, UNRELATED[kind])).toMatchObject(OK);
    },
  );

  test.each(WITH_BROKEN_SELECTOR)('$kind with $what can get any selector of its machines', async ({ kind, item }) => {
    const query = '&dryRun=All';
    const sound = kind === 'MachineSet' ? machineSet() : machineDeployment();
    const { body } = await api.get(item);
    const { metadata } = body as Item;
    const repaired = forCreation(sound) as { spec: object };
    const spec = {
      ...repaired.spec,
      selector: { matchLabels: { other: 'b' } },
      template: { metadata: { labels: { other: 'b' } }, spec: { class: { kind: 'MachineClass', name: 'c' } } },
    };

    expect(await api.replace(item, { ...repaired, kind, metadata, spec }, { query })).toMatchObject(OK);
  });

  test.each(STORED)('$kind with $what takes a label in a full write, finalizers, and goes', async ({ item }) => {
    const { body } = await api.get(item);
    const { metadata, ...rest } = body as Item;
    expect(await api.replace(item, { ...rest, metadata: { ...metadata, labels: { a: 'b' } } })).toMatchObject(OK);
    expect(await api.patch(item, { metadata: { finalizers: [FINALIZER] } })).toMatchObject(OK);
    expect(await api.delete(item)).toMatchObject({ ...OK, body: { metadata: { finalizers: [FINALIZER] } } });
    expect(await api.patch(item, { metadata: { finalizers: null } })).toMatchObject(OK);

    expect(await api.get(item)).toMatchObject({ status: 404 });
  });
});

describe('a field that is broken', () => {
  test('cannot be broken in another way', async () => {
    const answer = await api.patch(withBadTimeout, { spec: { drainTimeout: 'later' } });

    expect(answer).toMatchObject({ status: 422 });
    expect(causesOf(answer).map(({ field }) => field)).toEqual(['spec.drainTimeout']);
  });

  test('cannot be filled in wrongly', async () => {
    const answer = await api.patch(withoutSelector, { spec: { selector: { matchLabels: { pool: 'b' } } } });

    expect(answer).toMatchObject({ status: 422 });
    expect(causesOf(answer).map(({ field }) => field)).toEqual(['spec.selector']);
  });

  test('can be repaired before others are, and not be broken again', async () => {
    const strategy = await api.patch(twiceBroken, { spec: { strategy: { type: 'Recreate' } } });
    const selector = await api.patch(twiceBroken, { spec: { selector: { matchLabels: { pool: 'a' } } } });
    const again = await api.patch(twiceBroken, { spec: { strategy: null } });

    expect([strategy, selector, again]).toMatchObject([OK, OK, { status: 422 }]);
  });
});
