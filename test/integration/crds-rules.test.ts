import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { mayChangeClass } from '../../pkg/apis/machine/v1alpha1/class-change.ts';
import { BROKEN_OBJECTS, UNWISE_OBJECTS } from '../broken-objects.ts';
import { forCreation, machine, machineClass, machineDeployment, machineSet } from '../builders.ts';
import { connect, namespace, type TestNamespace } from '../env/environment.ts';
import { causesOf, CrdsApi, type Item } from './crds-api.ts';

const REFUSED = [...BROKEN_OBJECTS, ...UNWISE_OBJECTS];
const DRY_RUN = '&dryRun=All';

let ns: TestNamespace;
let api: CrdsApi;
beforeAll(async () => {
  ns = await namespace();
  api = new CrdsApi(connect(), ns.name);
  const sound = [machine(), machineSet(), machineDeployment(), machineClass()];
  await api.createAll(sound.map((object) => ({ ...forCreation(object), metadata: { name: 'sound' } })));
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await ns[Symbol.asyncDispose]();
});

describe('what no controller could obey', () => {
  test.each(REFUSED)('$object.kind: $what is refused at $field', async ({ object, field, message }) => {
    const item = { ...forCreation(object), metadata: { name: 'broken' } };

    const answer = await api.create(item, DRY_RUN);

    expect(answer).toMatchObject({ status: 422 });
    expect(causesOf(answer)).toContainEqual(
      expect.objectContaining({ field, message: expect.stringContaining(message) as unknown }),
    );
  });

  test('negative replicas are told once', async () => {
    for (const object of [
      machineSet((s) => (s.spec.replicas = -1)),
      machineDeployment((d) => (d.spec.replicas = -1)),
    ]) {
      const answer = await api.create({ ...forCreation(object), metadata: { name: 'broken' } }, DRY_RUN);

      expect(causesOf(answer)).toHaveLength(1);
    }
  });

  test.each(REFUSED)('$object.kind: a change to $what is refused', async ({ object, field, message }) => {
    const item = { ...forCreation(object), metadata: { name: 'sound' } };
    const { body } = await api.get(item);
    const { metadata } = body as Item;

    const answer = await api.replace(item, { ...item, metadata }, { query: DRY_RUN });

    expect(answer).toMatchObject({ status: 422 });
    expect(causesOf(answer)).toContainEqual(
      expect.objectContaining({ field, message: expect.stringContaining(message) as unknown }),
    );
  });
});

describe('what can be obeyed', () => {
  test.each([
    {
      what: 'a surge above 100%',
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '200%', maxUnavailable: '0%' } },
    },
    {
      what: 'no surge and nothing unavailable',
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
    },
    {
      what: 'all unavailable at once',
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '100%' } },
    },
    {
      what: 'more unavailable than there may be, as a number',
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 500 } },
    },
    { what: 'Recreate alone', strategy: { type: 'Recreate' } },
    {
      what: 'in-place updates by hand',
      strategy: {
        type: 'InPlaceUpdate',
        inPlaceUpdate: { maxSurge: 0, maxUnavailable: '10%', orchestrationType: 'Manual' },
      },
    },
  ])('$what is taken', async ({ strategy }) => {
    const item = {
      ...forCreation(machineDeployment((d) => (d.spec.strategy = strategy))),
      metadata: { name: 'taken' },
    };

    expect(await api.create(item, DRY_RUN)).toMatchObject({ status: 201 });
  });

  test.each(['0', '0s', '300ms', '1h2m3.5s', '+5m', '.5h', '1.m', '5µs', '72h0m0s', '2562047h47m16.854775807s'])(
    'duration %s is taken',
    async (drainTimeout) => {
      const item = {
        ...forCreation(machine((m) => (m.spec.drainTimeout = drainTimeout))),
        metadata: { name: 'taken' },
      };

      expect(await api.create(item, DRY_RUN)).toMatchObject({ status: 201 });
    },
  );

  test('a selector of expressions that the template satisfies is taken', async () => {
    const object = machineSet((s) => {
      s.spec.selector = {
        matchExpressions: [
          { key: 'pool', operator: 'In', values: ['b', 'a'] },
          { key: 'pool', operator: 'NotIn', values: ['b'] },
          { key: 'zone', operator: 'NotIn', values: ['a'] },
          { key: 'pool', operator: 'Exists' },
          { key: 'zone', operator: 'DoesNotExist' },
        ],
      };
    });

    expect(await api.create({ ...forCreation(object), metadata: { name: 'taken' } }, DRY_RUN)).toMatchObject({
      status: 201,
    });
  });

  test('the hash label can be given to template and selector one after the other', async () => {
    const item = { kind: 'MachineSet', metadata: { name: 'sound' } };
    const labels = { 'machine-template-hash': '1' };

    const inTemplate = await api.patch(item, { spec: { template: { metadata: { labels } } } });
    const inSelector = await api.patch(item, { spec: { selector: { matchLabels: labels } } });

    expect([inTemplate.status, inSelector.status]).toEqual([200, 200]);
  });
});

describe('the provider id of a Machine', () => {
  const confirmed = { status: { currentStatus: { phase: 'Running' } } };
  const stored = (name: string, providerID?: string): Item & { spec: object } => ({
    ...(forCreation(machine((m) => (m.spec = { class: { kind: 'MachineClass', name: 'c' } }))) as unknown as {
      spec: object;
    }),
    kind: 'Machine',
    metadata: { name },
    ...(providerID !== undefined && { spec: { class: { kind: 'MachineClass', name: 'c' }, providerID } }),
  });

  test('is set once, when the VM is confirmed at the latest', async () => {
    const item = stored('made');
    await api.createAll([item]);
    const record = (providerID: string | null): Promise<{ status: number }> =>
      api.patch(item, { spec: { providerID } });

    const creating = [await record('a'), await record('b')];
    await api.patch(item, confirmed, 'status');
    const refused = [await record('c'), await record(''), await record(null)];
    const again = [await record('b'), await api.patch(item, { spec: { drainTimeout: '1h' } })];

    expect(creating.map(({ status }) => status)).toEqual([200, 200]);
    expect(refused.map(({ status }) => status)).toEqual([422, 422, 422]);
    expect(again.map(({ status }) => status)).toEqual([200, 200]);
    const answer = await api.patch(item, { spec: { providerID: 'c' } });
    expect(causesOf(answer)).toEqual([
      {
        field: 'spec.providerID',
        message: expect.stringContaining('delete the Machine') as unknown,
        reason: 'FieldValueInvalid',
      },
    ]);
  });

  test('can still be recorded for a machine that got its phase without one', async () => {
    const item = stored('late');
    await api.createAll([item]);
    await api.patch(item, confirmed, 'status');

    expect(await api.patch(item, { spec: { providerID: 'a' } })).toMatchObject({ status: 200 });
  });
});

describe('the class of a Machine', () => {
  const failed = (errorCode?: string): object => ({
    currentStatus: { phase: 'CrashLoopBackOff' },
    lastOperation: { type: 'Create', state: 'Failed', ...(errorCode !== undefined && { errorCode }) },
  });
  const rows = [
    { what: 'nothing is known of it', status: undefined, isRefused: true },
    { what: 'its VM is confirmed', status: { currentStatus: { phase: 'Running' } }, isRefused: true },
    { what: 'its creation was not answered', status: failed('Unavailable'), isRefused: true },
    { what: 'its VM could not be recorded', status: failed('RecordRefused'), isRefused: true },
    {
      what: 'its creation goes on',
      status: { lastOperation: { type: 'Create', state: 'Processing' } },
      isRefused: true,
    },
    {
      what: 'it has a VM that cannot be initialized',
      status: failed('InvalidArgument'),
      providerID: 'a',
      isRefused: true,
    },
    { what: 'no VM was asked for', status: failed('NeverAsked'), isRefused: false },
    { what: 'its class cannot be used', status: failed(), isRefused: false },
    { what: 'its class was refused', status: failed('InvalidArgument'), isRefused: false },
    { what: 'there was no room', status: failed('ResourceExhausted'), isRefused: false },
  ];

  test.each(rows)('when $what: a change is refused: $isRefused', async ({ what, status, providerID, isRefused }) => {
    const named = { kind: 'MachineClass', name: 'c' };
    const spec = { class: named, ...(providerID !== undefined && { providerID }) };
    const item = { kind: 'Machine', metadata: { name: `class-${rows.findIndex((row) => row.what === what)}` } };
    await api.createAll([{ ...(forCreation(machine()) as unknown as Item), ...item, spec } as Item]);
    if (status !== undefined) await api.patch(item, { status }, 'status');
    const stored = machine((m) => Object.assign(m, { spec, status: status ?? {} }));

    const kind = await api.patch(item, { spec: { class: { kind: 'OtherClass' } } });
    const same = await api.patch(item, { spec: { class: { name: 'c' }, drainTimeout: '1h' } });
    const other = await api.patch(item, { spec: { class: { name: 'd' } } });

    expect([kind.status, same.status, other.status]).toEqual([200, 200, isRefused ? 422 : 200]);
    const refusal = {
      field: 'spec.class',
      message: expect.stringContaining('class.name cannot be changed') as unknown,
      reason: 'FieldValueInvalid',
    };
    expect(causesOf(other)).toEqual(isRefused ? [refusal] : []);
    expect(mayChangeClass(stored)).toBe(!isRefused);
  });

  test('is given to a Machine that names none', () => {
    expect(mayChangeClass(machine((m) => delete m.spec.class))).toBe(true);
  });
});

describe('a selector that selects its machines', () => {
  const KINDS = [{ kind: 'MachineSet' }, { kind: 'MachineDeployment' }];
  const labels = { pool: 'a', zone: 'z' };
  const soundNamed = (kind: string, name: string): Item & { spec: object } => ({
    ...(forCreation(kind === 'MachineSet' ? machineSet() : machineDeployment()) as unknown as { spec: object }),
    kind,
    metadata: { name },
  });
  const changes = [
    { what: 'moved to another label', selector: { matchLabels: { pool: null, zone: 'z' } } },
    { what: 'moved to another value', selector: { matchLabels: { pool: 'b' } }, template: { pool: 'b', zone: 'z' } },
    { what: 'narrowed', selector: { matchLabels: labels } },
    { what: 'narrowed by an expression', selector: { matchExpressions: [{ key: 'pool', operator: 'Exists' }] } },
    {
      what: 'spelled as an expression',
      selector: { matchLabels: null, matchExpressions: [{ key: 'pool', operator: 'In', values: ['a'] }] },
    },
  ];
  const rows = KINDS.flatMap(({ kind }) => changes.map((change) => ({ kind, ...change })));

  test.each(rows)('$kind: it cannot be $what, although the template follows', async ({ kind, selector, template }) => {
    const item = soundNamed(kind, 'sound');
    const answer = await api.patch(item, {
      spec: { selector, template: { metadata: { labels: template ?? labels } } },
    });

    expect(answer).toMatchObject({ status: 422 });
    expect(causesOf(answer)).toEqual([
      {
        field: 'spec.selector',
        message: expect.stringContaining('selector cannot be changed') as unknown,
        reason: 'FieldValueInvalid',
      },
    ]);
  });

  test.each(KINDS)('$kind: it can be written again, with empty parts as well', async ({ kind }) => {
    const item = soundNamed(kind, `again-${kind.toLowerCase()}`);
    await api.createAll([item]);
    const { body } = await api.get(item);
    const stored = body as Item & { spec: { selector: object } };
    const spec = { ...stored.spec, selector: { ...stored.spec.selector, matchExpressions: [] } };

    expect(await api.replace(item, { ...stored, spec }, { query: DRY_RUN })).toMatchObject({ status: 200 });
    expect(
      await api.patch(item, { spec: { template: { metadata: { labels: { ...labels, new: 'x' } } } } }),
    ).toMatchObject({ status: 200 });
  });

  test('a set that has the hash label cannot lose it or get another', async () => {
    const labelled = { pool: 'a', 'machine-template-hash': '1' };
    const item = soundNamed('MachineSet', 'hashed');
    await api.createAll([item]);
    const change = (selector: object, hash: string): object => ({
      spec: {
        selector: { matchLabels: selector },
        template: { metadata: { labels: { 'machine-template-hash': hash } } },
      },
    });

    const given = await api.patch(item, change(labelled, '1'));
    const other = await api.patch(item, change({ 'machine-template-hash': '2' }, '2'));
    const lost = await api.patch(item, change({ 'machine-template-hash': null }, '1'));

    expect([given.status, other.status, lost.status]).toEqual([200, 422, 422]);
  });

  test('a deployment cannot be given the hash label', async () => {
    const matchLabels = { 'machine-template-hash': '1' };
    const answer = await api.patch(soundNamed('MachineDeployment', 'sound'), {
      spec: { selector: { matchLabels }, template: { metadata: { labels: matchLabels } } },
    });

    expect(answer).toMatchObject({ status: 422 });
  });
});
