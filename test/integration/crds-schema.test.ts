import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { DEFINITIONS } from '../../hack/generate/crds/all.ts';
import { forCreation, machine, machineClass, machineDeployment, machineSet } from '../builders.ts';
import { connect, namespace, type TestNamespace } from '../env/environment.ts';
import { FULL_OBJECTS } from '../full-objects.ts';
import { CrdsApi } from './crds-api.ts';
import { missingFields } from './missing-fields.ts';

const run = promisify(execFile);

let ns: TestNamespace;
let api: CrdsApi;
let cache: string;
beforeAll(async () => {
  ns = await namespace();
  api = new CrdsApi(connect(), ns.name);
  cache = await mkdtemp(path.join(tmpdir(), 'machinist-kubectl-'));
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await ns[Symbol.asyncDispose]();
  await rm(cache, { recursive: true });
});

async function kubectl(...args: string[]): Promise<string> {
  const connection = connect();
  const program = connection.programs.kubectl?.path ?? 'kubectl';
  const common = ['--kubeconfig', connection.kubeconfig, '--cache-dir', cache, '--namespace', ns.name];
  const { stdout } = await run(program, [...common, ...args]);
  return stdout;
}

describe('types and CRDs have the same fields', () => {
  test.each(FULL_OBJECTS)('a full $kind is stored and read back unchanged', async (object) => {
    await api.createAll([object]);
    await writeStatus(object);

    const { body } = await api.get(object);

    const { metadata: _ours, ...want } = object;
    const { metadata: _theirs, ...have } = body as { metadata: object };
    expect(have).toEqual(want);
  });

  test.each(DEFINITIONS)('a full $kind has each field that the CRD names', ({ kind, properties }) => {
    const object = FULL_OBJECTS.find((full) => full.kind === kind);

    expect(missingFields(properties, object, kind)).toEqual([]);
  });
});

/** Writes the status of an object that is stored already, if its kind has one. */
async function writeStatus(object: (typeof FULL_OBJECTS)[number]): Promise<void> {
  if (!('status' in object)) return;
  const { metadata } = (await api.get(object)).body as { metadata: object };
  const { status, body } = await api.replace(object, { ...object, metadata }, { subresource: 'status' });
  if (status !== 200) throw new Error(JSON.stringify(body));
}

describe('objects that Go clients write', () => {
  const zeroTemplate = {
    metadata: { creationTimestamp: null, labels: { pool: 'a' } },
    spec: {
      class: { kind: 'MachineClass', name: 'class-1' },
      nodeTemplate: { metadata: { creationTimestamp: null }, spec: {} },
    },
  };
  const selector = { matchLabels: { pool: 'a' } };

  test.each([
    {
      kind: 'Machine',
      spec: { ...zeroTemplate.spec, drainTimeout: '10m0s' },
      status: {
        lastOperation: { lastUpdateTime: null },
        currentStatus: { lastUpdateTime: null, preserveExpiryTime: null },
      },
    },
    {
      kind: 'MachineSet',
      spec: { replicas: 0, selector, machineClass: {}, template: zeroTemplate },
      status: { lastOperation: { lastUpdateTime: null }, machineSetCondition: null, failedMachines: null },
    },
    {
      kind: 'MachineDeployment',
      spec: {
        selector,
        template: zeroTemplate,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: '10%' }, inPlaceUpdate: null },
        rollbackTo: null,
        progressDeadlineSeconds: null,
      },
      status: { conditions: null, failedMachines: null },
    },
  ])('a $kind with nulls and empty members is taken, status too', async ({ kind, spec, status }) => {
    const item = {
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind,
      metadata: { name: 'go', creationTimestamp: null },
      spec,
      status: {},
    };

    const created = await api.create(item);
    const { metadata } = created.body as { metadata: object };
    const written = await api.replace(item, { ...item, metadata, status }, { subresource: 'status' });

    expect(created).toMatchObject({ status: 201 });
    expect(written).toMatchObject({ status: 200 });
  });
});

describe('replicas', () => {
  test.each([
    { object: machineSet((s) => delete s.spec.replicas) },
    { object: machineDeployment((d) => delete d.spec.replicas) },
  ])('of a $object.kind default to 0 and follow the scale subresource', async ({ object }) => {
    const item = { ...forCreation(object), metadata: { name: 'scaled' } };

    const created = await api.create(item);
    expect(created).toMatchObject({ status: 201, body: { spec: { replicas: 0 } } });
    expect(await api.patch(item, { spec: { replicas: 5 } }, 'scale')).toMatchObject({ status: 200 });
    expect(await api.patch(item, { status: { replicas: 4 } }, 'status')).toMatchObject({ status: 200 });

    expect(await api.get(item)).toMatchObject({ body: { spec: { replicas: 5 } } });
    expect(await api.get(item, 'scale')).toMatchObject({ body: { spec: { replicas: 5 }, status: { replicas: 4 } } });
    expect(await api.patch(item, { spec: { replicas: -1 } }, 'scale')).toMatchObject({ status: 422 });
  });
});

describe('kubectl', () => {
  beforeAll(async () => {
    const shown = [machine(), machineSet(), machineDeployment(), machineClass()];
    await api.createAll(shown.map((object) => ({ ...forCreation(object), metadata: { name: 'shown' } })));
  });

  test.each([
    { field: 'machines', words: 'A virtual machine and the Node that it becomes' },
    { field: 'mc.status.machineConditions', words: 'for display; no decision depends on them' },
    { field: 'mcs.spec.selector', words: 'Must match the labels of the template' },
    { field: 'mcd.spec.strategy.rollingUpdate.maxSurge', words: 'percentage of replicas, rounded up' },
    { field: 'mcc.nodeTemplate.capacity', words: 'must contain cpu, gpu and memory' },
  ])('explains $field', async ({ field, words }) => {
    const explained = await kubectl('explain', field);

    expect(explained.replaceAll(/\s+/g, ' ')).toContain(words);
  });

  test.each([
    { name: 'mcd', args: [], header: 'NAME READY DESIRED UP-TO-DATE AVAILABLE AGE' },
    { name: 'mcs', args: [], header: 'NAME DESIRED CURRENT READY AGE' },
    { name: 'mc', args: [], header: 'NAME STATUS AGE NODE' },
    {
      name: 'mcd',
      args: ['--output', 'wide'],
      header: 'NAME READY DESIRED UP-TO-DATE AVAILABLE AGE CLASS STRATEGY PAUSED PROGRESSING',
    },
    { name: 'mcs', args: ['--output', 'wide'], header: 'NAME DESIRED CURRENT READY AGE CLASS REVISION' },
    {
      name: 'mc',
      args: ['--output', 'wide'],
      header: 'NAME STATUS AGE NODE PROVIDERID CLASS ZONE SINCE PRESERVED REASON MESSAGE',
    },
    { name: 'mcc', args: ['--output', 'wide'], header: 'NAME AGE PROVIDER TYPE ZONE' },
    { name: 'mcc', args: [], header: 'NAME AGE' },
  ])('shows $header for $name', async ({ name, args, header }) => {
    const [line = ''] = (await kubectl('get', name, ...args)).split('\n');

    expect(line.trim().split(/\s+/).join(' ')).toBe(header);
  });
});
