import { isDeepStrictEqual } from 'node:util';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Finding } from '../../cmd/machinist/preflight/findings.ts';
import { UNFREEZE_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { createNewSet } from '../../pkg/controllers/machine-deployment/sets/create-set.ts';
import { CreationBrake } from '../../pkg/controllers/replicas/creation-brake.ts';
import { machineDeployments, machines, machineSets } from '../../pkg/kube/client/resource.ts';
import { BROKEN_OBJECTS } from '../broken-objects.ts';
import { forCreation } from '../builders.ts';
import { privateApiServer, type TestServer } from '../env/api-server.ts';
import { eventually } from '../expect/eventually.ts';
import { mutateOnCreation, relabelling } from '../env/mutating-policy.ts';
import { MachineSetWorld } from './machine-set-world.ts';
import { Program } from '../e2e/program.ts';

const RELEASE = { [UNFREEZE_ANNOTATION]: 'True' };

let server: TestServer;
beforeAll(async () => {
  server = await privateApiServer({ crds: 'original' });
});
afterAll(async () => await server[Symbol.asyncDispose]());

test('under the original definitions a deployment is created, scaled, rolled and deleted', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  await world.createDeployment(3);
  await eventually(() => expect(world.running()).toHaveLength(3));
  await world.patch(machineDeployments, 'd', { spec: { replicas: 4 } });
  await eventually(() => expect(world.running()).toHaveLength(4));
  await world.patch(machineDeployments, 'd', {
    spec: { template: { spec: { class: { kind: 'MachineClass', name: 'c2' } } } },
  });
  await eventually(async () => {
    expect((await world.get(machineDeployments, 'd')).status).toMatchObject({ replicas: 4, updatedReplicas: 4 });
    expect(world.running().map(({ spec }) => spec.class?.name)).toEqual(['c2', 'c2', 'c2', 'c2']);
  });
  await world.delete(machineDeployments, 'd');
  await eventually(async () => expect(await world.list(machineDeployments)).toEqual([]));

  expect(await world.list(machines)).toEqual([]);
});

test('a settled deployment is not written again, although the server prunes and defaults what it likes', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  await world.createDeployment(2, ({ spec }) => {
    spec.template.spec = {
      class: { kind: 'MachineClass', name: 'c' },
      nodeTemplate: { metadata: { labels: { a: '1' } }, spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } },
      drainTimeout: '1h',
    };
  });
  await eventually(async () => {
    const { status } = await world.get(machineDeployments, 'd');
    expect(status?.conditions?.map(({ reason }) => reason)).toContain('NewMachineSetAvailable');
    expect(world.running()).toHaveLength(2);
  });
  const [failed] = world.running();
  await world.setPhase(failed?.metadata.name ?? '', 'Unknown', { type: 'HealthCheck', state: 'Failed' });
  await eventually(async () => {
    expect((await world.get(machineDeployments, 'd')).status?.failedMachines).toHaveLength(1);
  });
  await world.killManager();
  await world.startManager();
  // The new manager has looked at everything once it answers to a change.
  await world.patch(machineDeployments, 'd', { spec: { replicas: 3 } });
  await eventually(() => expect(world.machines.list()).toHaveLength(3));

  expect(world.manager.count('patch', 'machines')).toBe(0);
  expect(world.manager.count('patch', 'machinesets')).toBe(1);
});

test('a set that a changed selector strands is told of, on both objects, with its machines', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  await world.createDeployment(2);
  await eventually(() => expect(world.running()).toHaveLength(2));
  const [stranded] = await world.list(machineSets);
  const moved = { pool: null, other: 'd' };
  await world.patch(machineDeployments, 'd', {
    spec: { selector: { matchLabels: moved }, template: { metadata: { labels: moved } } },
  });

  await eventually(() => {
    const told = world.events.filter(({ reason }) => reason === 'ReleasedMachineSet');
    expect(told.map(({ subject, type }) => [subject.name, type])).toEqual([
      ['d', 'Warning'],
      [stranded?.metadata.name, 'Warning'],
    ]);
    for (const { message } of told) expect(message).toContain(`${stranded?.metadata.name}, which was released with 2`);
  });
  await eventually(() => expect(world.running()).toHaveLength(4));
});

const HASH = 'machine-template-hash';

const invalidSpecOf = async (world: MachineSetWorld): Promise<string | undefined> =>
  (await world.get(machineDeployments, 'd')).status?.conditions?.find(({ type }) => type === 'InvalidSpec')?.message;

test.each([
  { what: 'labels', selector: { matchLabels: { pool: 'd', [HASH]: '1' } }, labels: { [HASH]: '1' } },
  {
    what: 'the lack of it',
    selector: { matchExpressions: [{ key: HASH, operator: 'DoesNotExist' as const }] },
    labels: {},
  },
])('a selector by the hash label ($what) is told of and makes nothing', async ({ selector, labels }) => {
  await using world = await MachineSetWorld.start({}, server.connection);
  await world.createDeployment(2, ({ spec }) => {
    spec.selector = { matchLabels: { pool: 'd' }, ...selector };
    spec.template.metadata = { labels: { pool: 'd', ...labels } };
  });

  await eventually(async () =>
    expect(await invalidSpecOf(world)).toContain('selector uses label machine-template-hash'),
  );
  expect(await world.list(machineSets)).toEqual([]);
});

test('a selector that comes to name the hash label strands nothing, and nothing is left when it is deleted', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  await world.createDeployment(2);
  await eventually(() => expect(world.running()).toHaveLength(2));
  const before = world.running().map(({ metadata }) => metadata.uid);
  const copied = { [HASH]: '1' };
  await world.patch(machineDeployments, 'd', {
    spec: { selector: { matchLabels: copied }, template: { metadata: { labels: copied } } },
  });
  await eventually(async () =>
    expect(await invalidSpecOf(world)).toContain('selector uses label machine-template-hash'),
  );
  expect((await world.list(machineSets)).map(({ metadata }) => metadata.ownerReferences?.length)).toEqual([1]);

  // Repaired it goes on as if nothing had been.
  const none = { [HASH]: null };
  await world.patch(machineDeployments, 'd', {
    spec: { selector: { matchLabels: none }, template: { metadata: { labels: none } } },
  });
  await eventually(async () => expect(await invalidSpecOf(world)).toBeUndefined());
  expect(world.running().map(({ metadata }) => metadata.uid)).toEqual(before);

  await world.patch(machineDeployments, 'd', {
    spec: { selector: { matchLabels: copied }, template: { metadata: { labels: copied } } },
  });
  await world.delete(machineDeployments, 'd');
  await eventually(async () => expect(await world.list(machineDeployments)).toEqual([]));
  expect([await world.list(machineSets), await world.list(machines)]).toEqual([[], []]);
});

test('a set whose hash label somebody took away stays, although the selector asks for that label', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  await world.createDeployment(1, ({ spec }) => {
    spec.selector = { matchLabels: { pool: 'd' }, matchExpressions: [{ key: HASH, operator: 'Exists' }] };
    spec.template.metadata = { labels: { pool: 'd', [HASH]: '1' } };
  });
  await eventually(() => expect(world.running()).toHaveLength(1));
  const [set] = await world.list(machineSets);
  await world.patch(machineSets, set?.metadata.name ?? '', { metadata: { labels: { [HASH]: null } } });
  await world.patch(machineDeployments, 'd', { spec: { replicas: 2 } });

  await eventually(() => expect(world.running()).toHaveLength(2));
  expect((await world.list(machineSets)).map(({ metadata }) => metadata.uid)).toEqual([set?.metadata.uid]);
});

test('a set of the same template that has lost its owner is no collision', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  const deployment = await world.createDeployment(1);
  await eventually(() => expect(world.running()).toHaveLength(1));
  await world.killManager();
  const [set] = await world.list(machineSets);
  const orphan = await world.patch(machineSets, set?.metadata.name ?? '', { metadata: { ownerReferences: [] } });
  const seen: unknown[] = [];
  const { reader, writer, signal } = world.user;
  const parts = {
    reader,
    writer,
    brake: new CreationBrake(world.user),
    recorder: { event: () => undefined },
    machineSets: { wrote: (one: unknown) => seen.push(one), byIndex: () => [] },
  };

  expect(await createNewSet(parts as never, deployment, [], 1, signal)).toBeUndefined();
  expect(seen).toMatchObject([{ metadata: { uid: orphan.metadata.uid } }]);
  expect((await world.get(machineDeployments, 'd')).status?.collisionCount ?? 0).toBe(0);
});

test('a MachineSet that is stored with another template is made twice at most', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  const annotations = { by: 'webhook' };
  await using _policy = await mutateOnCreation(server, {
    namespace: world.namespace.name,
    kind: 'MachineSet',
    plural: 'machinesets',
    patch: [{ op: 'add', path: '/spec/template/metadata/annotations', value: annotations }],
    probe: { metadata: { name: 'probe' }, spec: { template: { metadata: {} } } },
    isChanged: (created) =>
      isDeepStrictEqual((created as MachineSet).spec.template?.metadata?.annotations, annotations),
  });
  await world.createDeployment(1);

  await eventually(async () => {
    const { status } = await world.get(machineDeployments, 'd');
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({
        type: 'Progressing',
        reason: 'MachineSetCreateError',
        message: expect.stringContaining('a webhook or CustomResourceDefinition changes MachineSets'),
      }),
    );
  });
  await world.patch(machineDeployments, 'd', { metadata: { annotations: { look: 'again' } } });
  await eventually(() => world.succeeded('create', 'machinesets') === 2);
  expect(await world.list(machineSets)).toHaveLength(2);
});

test('machines that are lost as they are made are made a bounded number of times, until the annotation releases that', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  {
    await using _policy = await mutateOnCreation(server, relabelling(world.namespace.name, 'pool'));
    await world.createDeployment(2);

    await eventually(
      async () => {
        const { metadata, status } = await world.get(machineDeployments, 'd');
        expect(metadata.labels).toEqual({ freeze: 'True' });
        expect(status?.conditions).toContainEqual(
          expect.objectContaining({
            type: 'Frozen',
            status: 'True',
            reason: 'CreationLimitReached',
            message: expect.stringMatching(
              /29 Machines within a minute \(limit:.*annotation safety.machine.sapcloud.io\/unfreeze/,
            ),
          }),
        );
      },
      { timeoutMs: 120_000 },
    );
    await eventually(() => expect(world.events.map(({ reason }) => reason)).toContain('CreationLimitReached'));
    await eventually(() => expect(world.machines.list()).toHaveLength(29));

    // It lasts, whoever takes over.
    await world.killManager();
    await world.startManager();
    await world.patch(machineDeployments, 'd', { spec: { replicas: 3 } });
    await eventually(async () => {
      const { metadata, status } = await world.get(machineDeployments, 'd');
      expect(status?.observedGeneration).toBe(metadata.generation);
    });
    expect(world.machines.list()).toHaveLength(29);

    // Nor does it go on without the label that holds it back.
    await world.patch(machineDeployments, 'd', { metadata: { labels: { freeze: null } } });
    await eventually(async () => {
      expect((await world.get(machineDeployments, 'd')).metadata.labels).toEqual({ freeze: 'True' });
    });
    expect(world.machines.list()).toHaveLength(29);
  }

  await world.patch(machineDeployments, 'd', { metadata: { annotations: RELEASE } });
  await eventually(() => expect(world.machines.list()).toHaveLength(29 + 3));
  const { metadata, status } = await world.get(machineDeployments, 'd');
  expect([metadata.labels, status?.conditions?.some(({ type }) => type === 'Frozen')]).toEqual([undefined, false]);
  expect(Object.keys(metadata.annotations ?? {})).not.toContain(UNFREEZE_ANNOTATION);
});

test('a MachineSet of its own is stopped too, and released', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  {
    await using _policy = await mutateOnCreation(server, relabelling(world.namespace.name, 'set'));
    await world.createSet(1);

    await eventually(
      async () => {
        const { metadata, status } = await world.get(machineSets, 's');
        expect(metadata.labels).toEqual({ freeze: 'True' });
        expect(status?.machineSetCondition).toContainEqual(
          expect.objectContaining({ type: 'Frozen', status: 'True', reason: 'CreationLimitReached' }),
        );
      },
      { timeoutMs: 120_000 },
    );
    expect(world.machines.list()).toHaveLength(23);

    await world.killManager();
    await world.startManager();
    await world.patch(machineSets, 's', { metadata: { labels: { freeze: null } } });
    await eventually(async () =>
      expect((await world.get(machineSets, 's')).metadata.labels).toEqual({ freeze: 'True' }),
    );
    expect(world.machines.list()).toHaveLength(23);
  }

  await world.patch(machineSets, 's', { metadata: { annotations: RELEASE } });
  await eventually(() => expect(world.machines.list()).toHaveLength(23 + 1));
  const { metadata, status } = await world.get(machineSets, 's');
  expect([metadata.labels, metadata.annotations, status?.machineSetCondition]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

// Negative replicas are refused by the API server itself, because of the scale subresource.
const broken = BROKEN_OBJECTS.filter(
  ({ object, field }) =>
    (object.kind === 'MachineSet' || object.kind === 'MachineDeployment') && field !== 'spec.replicas',
);

test('whatever the original definitions store, nothing crashes: a condition tells what is wrong, deletion goes on', async () => {
  await using world = await MachineSetWorld.start({}, server.connection);
  for (const [i, { object }] of broken.entries()) {
    const built = forCreation(object);
    const { metadata } = { ...built, metadata: { ...built.metadata, name: `x-${i}`, namespace: world.namespace.name } };
    // Broken on purpose: its type is only what the table was built from.
    if (object.kind === 'MachineSet') {
      await world.user.writer.create('create', machineSets, { ...(built as MachineSet), metadata });
    } else {
      await world.user.writer.create('create', machineDeployments, { ...(built as MachineDeployment), metadata });
    }
  }

  await eventually(
    async () => {
      const conditions = new Map<string, string | undefined>();
      for (const { metadata, status } of await world.list(machineSets)) {
        conditions.set(metadata.name, status?.machineSetCondition?.find(({ type }) => type === 'InvalidSpec')?.message);
      }
      for (const { metadata, status } of await world.list(machineDeployments)) {
        conditions.set(metadata.name, status?.conditions?.find(({ type }) => type === 'InvalidSpec')?.message);
      }
      const told = broken.map(({ message }, i) => [i, message, conditions.get(`x-${i}`)] as const);
      expect(told.filter(([, message, text]) => text?.includes(message) !== true)).toEqual([]);
    },
    { timeoutMs: 120_000 },
  );
  expect(broken.length).toBeGreaterThan(50);
  expect(world.machines.list()).toEqual([]);

  for (const [i, { object }] of broken.entries()) {
    if (object.kind === 'MachineSet') await world.delete(machineSets, `x-${i}`);
    else await world.delete(machineDeployments, `x-${i}`);
  }
  await eventually(async () => {
    expect(await world.list(machineSets)).toEqual([]);
    expect(await world.list(machineDeployments)).toEqual([]);
  });
});

/** Lets the clock of a process go wrong by five minutes. */
const AHEAD = '--import=data:text/javascript,const{now}=Date;Date.now=()=>now()+300000';

test('machinist preflight says which fields the original definitions drop, which kind is not there or going, that there is no such namespace, and that a clock is wrong', async () => {
  const preflight = async (env: Readonly<Record<string, string>> = {}): Promise<readonly Finding[]> => {
    const kubeconfig = `--target-kubeconfig=${server.connection.kubeconfig}`;
    const { stdout } = await Program.run('machinist', ['preflight', kubeconfig, '--namespace=nirvana', '-o', 'json'], {
      env,
    });
    const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
    return findings.filter(({ check }) => ['namespace', 'clock', 'kinds', 'fields'].includes(check));
  };
  const api = server.connection.api();

  const definition = (plural: string): string =>
    `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.machine.sapcloud.io`;
  await api.send('POST', '/apis/machine.sapcloud.io/v1alpha1/namespaces/default/machineclasses', {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'MachineClass',
    metadata: { name: 'held', finalizers: ['example.com/held'] },
    providerSpec: {},
  });

  const original = await preflight();
  await api.send('DELETE', definition('machinedeployments'));
  await api.send('DELETE', definition('machineclasses'));
  const lacking = await eventually(
    async () => {
      const findings = await preflight({ NODE_OPTIONS: AHEAD });
      expect(findings.filter(({ check, status }) => check === 'kinds' && status === 'fail')).toHaveLength(2);
      return findings;
    },
    { timeoutMs: 120_000 },
  );
  await api.close();

  expect(original.map(({ check, status }) => `${check} ${status}`)).toEqual(
    expect.arrayContaining(['namespace fail', 'clock ok', 'kinds ok', 'kinds warn', 'fields warn']),
  );
  expect(original).toContainEqual({
    check: 'fields',
    status: 'warn',
    detail: expect.stringContaining('status.machineConditions'),
    remedy: expect.stringContaining('crds/machine.sapcloud.io_'),
  });
  expect(lacking).toContainEqual(expect.objectContaining({ check: 'clock', status: 'warn' }));
  const clock = lacking.find(({ check }) => check === 'clock')?.detail ?? '';
  const aheadSeconds = Number(/^the clock of this host is (\d+\.\d) s ahead of/.exec(clock)?.[1]);
  // What one answer proves is less than the truth by as long as that answer took.
  expect(aheadSeconds).toBeGreaterThan(240);
  expect(aheadSeconds).toBeLessThanOrEqual(300);
  expect(lacking.find(({ check }) => check === 'kinds')).toMatchObject({
    detail: expect.stringContaining('machinedeployments'),
    remedy: expect.stringContaining('crds/machine.sapcloud.io_machinedeployments.yaml'),
  });
  expect(lacking.map(({ detail }) => detail)).toContain(
    'machineclasses.machine.sapcloud.io is being deleted with all its objects',
  );
}, 180_000);
