import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import { applyManifests, readManifests } from '../../hack/control-plane/apply.ts';
import type { ClusterAPIMachine } from '../../pkg/worlds/cluster-api/api/machine.ts';
import { CLUSTER_API_VERSION, INFRASTRUCTURE_GROUP } from '../../pkg/worlds/cluster-api/api/keys.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Secret } from '../../pkg/apis/wire.ts';
import { readAnnounced } from '../../pkg/worlds/cluster-api/announced.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import { ClusterAPIDriver } from '../../pkg/worlds/cluster-api/driver/driver.ts';
import { loadEndpoint } from '../../pkg/kube/client/config.ts';
import { GatedWriter } from '../../pkg/kube/client/gated-writer.ts';
import { HttpReader } from '../../pkg/kube/client/http-reader.ts';
import { apiVersionOf } from '../../pkg/kube/client/resource.ts';
import { Transport, type RequestRecord } from '../../pkg/kube/client/transport.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { CrashPoint, POINTS, type Point } from '../cloud/crash-point.ts';
import { ContractSimulator, SIM_CONFIG, SIM_MACHINE, templateOf } from '../contract-simulator.ts';
import { DIALECTS } from '../cluster-api/dialect.ts';
import { describeContract } from '../drivers/contract.ts';
import { DriverProcess } from '../drivers/driver-process.ts';
import { callOf, classOf, requestOf, stubOf } from '../drivers/requests.ts';
import { privateApiServer, type TestServer } from '../env/api-server.ts';
import { WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { SimProvider } from '../sim-provider.ts';
import { KubeSession, openGate } from './kube-session.ts';
import { OperatorSession } from './operator-session.ts';
import { grant } from './shipped-roles.ts';

const NAMESPACE = 'shoot';
const PATIENCE = { timeoutMs: 120_000 };
const USER = 'machinist-cluster-api-driver';
/** Of another provider, in a group of its own, under the older contract. */
const METAL = { apiGroup: 'metal.example.org', kind: 'MetalHost' } as const;
const providerSpec = { clusterName: 'c', infrastructureRef: { ...templateOf(SIM_MACHINE), name: 'small' } };

describe.each(DIALECTS)('where $version is served', (dialect) => {
  let plane: TestServer;
  let api: Api;
  let sim: ContractSimulator;
  let user: KubeSession;
  let kubeconfig: string;
  let directory: string;
  let driver: DriverProcess;
  let session: OperatorSession;
  let simulated: SimProvider;
  let metal: SimProvider;

  async function startDriver(socket: string, state: string): Promise<DriverProcess> {
    return await DriverProcess.start('cluster-api-driver', [
      `--address=unix://${socket}`,
      `--state-directory=${state}`,
      `--kubeconfig=${kubeconfig}`,
    ]);
  }

  /** The driver of the manager. */
  const restart = (): Promise<DriverProcess> =>
    startDriver(path.join(directory, 'driver.sock'), path.join(directory, 'state'));

  beforeAll(async () => {
    // Of its own: where both groups are served, kubectl takes `machine` for theirs.
    plane = await privateApiServer(WITHOUT_KUBELETS);
    const { connection } = plane;
    api = connection.api();
    sim = new ContractSimulator(api, NAMESPACE);
    user = new KubeSession(connection);
    kubeconfig = await connection.kubeconfigFor({ user: USER });
    directory = mkdtempSync(path.join(tmpdir(), 'cluster-api-driver-'));
    asked.length = 0;
    await applyManifests(api, await dialect.definitions());
    // As a provider brings it along: what its kinds need, for whoever aggregates it.
    const providerRole = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'metal', labels: { 'cluster.x-k8s.io/aggregate-to-manager': 'true' } },
      rules: [{ apiGroups: [METAL.apiGroup], resources: ['*'], verbs: ['*'] }],
    };
    await applyManifests(api, [providerRole]);
    for (const name of [NAMESPACE, `${NAMESPACE}-other`]) {
      await api.send('POST', '/api/v1/namespaces', { metadata: { name } });
      await grant(api, 'cluster-api-driver', name);
    }
    for (const role of ['control', 'control-identity', 'target', 'cluster-api'] as const)
      await grant(api, role, NAMESPACE);
    const manager = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'metal', namespace: NAMESPACE },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'metal' },
      subjects: [{ kind: 'User', name: 'machinist' }],
    };
    await applyManifests(api, [manager]);
    for (const [kind, contract] of [
      [SIM_MACHINE, 'v1beta2'],
      [SIM_CONFIG, 'v1beta2'],
      [METAL, 'v1beta1'],
    ] as const) {
      await sim.install(kind, contract);
      await sim.install(templateOf(kind), contract);
    }
    await sim.create(templateOf(SIM_CONFIG), 'w', { spec: { template: { spec: { users: [] } } } });
    for (const kind of [SIM_MACHINE, METAL]) {
      await sim.create(templateOf(kind), 'small', { spec: { template: { spec: { size: 1 } } } });
    }
    const cluster = { apiVersion: dialect.apiVersion, kind: 'Cluster', metadata: { name: 'c' }, spec: {} };
    await api.send('POST', dialect.pathOf(NAMESPACE, 'clusters'), cluster);
    driver = await restart();
    session = await OperatorSession.start({
      connection,
      subject: { user: 'machinist' },
      namespace: NAMESPACE,
      controllers: '*,cluster-api',
      flags: { driver: `cluster-api=unix://${directory}/driver.sock`, 'machine-safety-orphan-vms-period': '2s' },
    });
    simulated = await SimProvider.start(user, NAMESPACE, SIM_MACHINE, 'v1beta2');
    metal = await SimProvider.start(user, NAMESPACE, METAL, 'v1beta1');
  });

  afterAll(async () => {
    await session[Symbol.asyncDispose]();
    await driver.end('SIGKILL');
    await user[Symbol.asyncDispose]();
    await api.close();
    await plane[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  // What it promises to a manager does not depend on the version.
  if (dialect.version === CLUSTER_API_VERSION) {
    describeContract({
      name: 'cluster-api',
      machineClass: classOf('cluster-api', providerSpec),
      brokenClass: classOf('cluster-api', { ...providerSpec, version: 1.33 }),
      userData: '#!/bin/sh',
      // What DriverServer does for each driver alike.
      leftOut: [
        'health',
        'old-token',
        'old-token-of-a-creation',
        'highest-token-is-told',
        'tokens-of-another-cluster',
        'no-leader-election',
        'restart-keeps-tokens',
      ],
      notApplicable: ['untagged-vm', 'bad-secret', 'untagged-vm-by-a-foreign-id'],
      start: (state, socket) => startDriver(socket, state),
      cleanUp: async () => undefined,
    });
  }

  const COLLECTIONS = {
    machines: `/apis/${API_VERSION}/namespaces/${NAMESPACE}/machines`,
    deployments: `/apis/${API_VERSION}/namespaces/${NAMESPACE}/machinedeployments`,
    classes: `/apis/${API_VERSION}/namespaces/${NAMESPACE}/machineclasses`,
    theirs: dialect.pathOf(NAMESPACE, 'machines'),
    simulated: `/apis/${INFRASTRUCTURE_GROUP}/v1alpha7/namespaces/${NAMESPACE}/simmachines`,
    metal: `/apis/${METAL.apiGroup}/v1alpha7/namespaces/${NAMESPACE}/metalhosts`,
    secrets: `/api/v1/namespaces/${NAMESPACE}/secrets`,
    nodes: '/api/v1/nodes',
  } as const;

  async function all<T extends KubeObject>(collection: keyof typeof COLLECTIONS, of = ''): Promise<readonly T[]> {
    const { items } = await api.send<{ items: T[] }>('GET', COLLECTIONS[collection]);
    const found = items.filter(({ metadata }) => metadata.name.startsWith(of));
    return collection === 'theirs' ? found.map((one) => dialect.read('machines', one)) : found;
  }

  /** Whatever the driver makes for machines whose names begin like this, and Nodes. */
  async function leftOf(prefix: string): Promise<readonly string[]> {
    const kinds = ['theirs', 'simulated', 'metal', 'nodes'] as const;
    const objects = await Promise.all(kinds.map((kind) => all(kind, prefix)));
    const userData = (await all('secrets', prefix)).filter(({ metadata }) => metadata.name.endsWith('-userdata'));
    return [...objects.flat(), ...userData].map(({ metadata }) => metadata.name);
  }

  async function applyClass(name: string, spec: object): Promise<void> {
    await api.send('POST', COLLECTIONS.classes, {
      apiVersion: API_VERSION,
      kind: 'MachineClass',
      metadata: { name, namespace: NAMESPACE },
      provider: 'cluster-api',
      providerSpec: spec,
      secretRef: { name: 'user-data', namespace: NAMESPACE },
    });
  }

  describe('machines of a manager', () => {
    beforeAll(async () => {
      simulated.hasNodes = true;
      metal.hasNodes = true;
      await api.send('POST', COLLECTIONS.secrets, {
        metadata: { name: 'user-data' },
        stringData: { userData: '#cloud-config of <<MACHINE_NAME>>' },
      });
      await applyClass('small', providerSpec);
      await applyClass('metal', { ...providerSpec, infrastructureRef: { ...templateOf(METAL), name: 'small' } });
    });

    // promise: machines-cluster-api/machines-providers-cluster-api
    // promise: cluster-api/contracts-providers/machinedeployments-kind-infrastructure-template
    // promise: cluster-api/contracts-providers/machine-machinedeployment
    test('three come up, are rolled to another provider, and go, although the driver dies in the middle of each', async () => {
      const template = (className: string): object => ({
        metadata: { labels: { pool: 'd' } },
        spec: { class: { kind: 'MachineClass', name: className } },
      });
      await api.send('POST', COLLECTIONS.deployments, {
        apiVersion: API_VERSION,
        kind: 'MachineDeployment',
        metadata: { name: 'd', namespace: NAMESPACE },
        spec: {
          replicas: 3,
          selector: { matchLabels: { pool: 'd' } },
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3, maxUnavailable: 0 } },
          template: template('small'),
        },
      });
      const killInTheMiddle = async (begun: () => Promise<boolean>): Promise<void> => {
        await eventually(begun, PATIENCE);
        await driver.end('SIGKILL');
        driver = await restart();
      };
      const running = async (kind: 'simulated' | 'metal'): Promise<readonly Machine[]> =>
        await eventually(
          async () => {
            const machines = await all<Machine>('machines', 'd-');
            expect(machines.map(({ status }) => status?.currentStatus?.phase)).toEqual(Array(3).fill('Running'));
            expect(await all(kind, 'd-')).toHaveLength(3);
            return machines;
          },
          { ...PATIENCE, describe: () => `3 machines of ${kind}` },
        );

      await killInTheMiddle(async () => (await all('simulated', 'd-')).length > 0);
      const machines = await running('simulated');
      const theirs = await all<ClusterAPIMachine>('theirs', 'd-');
      expect(theirs.map(({ spec }) => spec?.providerID)).toEqual(machines.map(({ spec }) => spec.providerID));
      const [one] = theirs;
      const secret = await api.send<Secret>('GET', `${COLLECTIONS.secrets}/${one?.metadata.name}-userdata`);
      expect(Buffer.from(secret.data?.['value'] ?? '', 'base64').toString()).toBe(
        `#cloud-config of ${one?.metadata.name}`,
      );
      expect(one?.status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'BootstrapConfigReady', status: 'True', reason: 'DataSecretProvided' }),
      );

      // Another provider, in another group, under another contract: the class says so, and nothing else.
      await api.send('PATCH', `${COLLECTIONS.deployments}/d`, { spec: { template: template('metal') } });
      await killInTheMiddle(async () => (await all('metal', 'd-')).length > 0);
      await running('metal');
      expect(await all('simulated', 'd-')).toEqual([]);
      expect((await leftOf(one?.metadata.name ?? '')).length).toBe(0);

      await api.send('PATCH', `${COLLECTIONS.deployments}/d`, { spec: { replicas: 0 } });
      await killInTheMiddle(async () => {
        const left = await all<ClusterAPIMachine>('theirs', 'd-');
        // On a slow host all may be gone between two looks.
        return left.length < 3 || left.some(({ metadata }) => metadata.deletionTimestamp !== undefined);
      });
      await eventually(
        async () => expect([await all('machines', 'd-'), await leftOf('d-')]).toEqual([[], []]),
        PATIENCE,
      );
      const made = [...simulated.instances, ...metal.instances].filter(([name]) => name.startsWith('d-'));
      expect(made).toHaveLength(6);
      expect(made.filter(([, uids]) => uids.size !== 1)).toEqual([]);
    });

    test('a Machine of Cluster API that is deleted by hand keeps its VM until its machine is deleted', async () => {
      const machine = {
        apiVersion: API_VERSION,
        kind: 'Machine',
        metadata: { name: 'g-held', namespace: NAMESPACE },
        spec: { class: { kind: 'MachineClass', name: 'small' } },
      };
      await api.send('POST', COLLECTIONS.machines, machine);
      const ours = (): Promise<Machine> => api.send('GET', `${COLLECTIONS.machines}/g-held`);
      await eventually(async () => expect((await ours()).status?.currentStatus?.phase).toBe('Running'), PATIENCE);

      // Its provider has taken its time, which is no trouble.
      await eventually(async () => {
        const told = await api.send<{ items: (KubeObject & { type: string; reason: string })[] }>(
          'GET',
          `/api/v1/namespaces/${NAMESPACE}/events?fieldSelector=involvedObject.name=g-held,involvedObject.kind=Machine`,
        );
        expect(told.items.filter(({ type }) => type === 'Warning')).toEqual([]);
        expect(told.items.map(({ reason }) => reason)).toContain('VMCreated');
      }, PATIENCE);

      await api.send('DELETE', `${COLLECTIONS.theirs}/g-held`);
      await eventually(async () => {
        const [held] = await all<ClusterAPIMachine>('theirs', 'g-held');
        expect(held?.status?.conditions).toContainEqual(
          expect.objectContaining({ type: 'Deleting', reason: 'WaitingForPreTerminateHook' }),
        );
        expect((await ours()).status?.machineConditions).toContainEqual(
          expect.objectContaining({ type: 'VMDeletionRequested', status: 'True' }),
        );
      }, PATIENCE);
      const [infrastructure] = await all('simulated', 'g-held');
      expect(infrastructure?.metadata.deletionTimestamp).toBeUndefined();
      expect((await ours()).status?.currentStatus?.phase).toBe('Running');

      await api.send('DELETE', `${COLLECTIONS.machines}/g-held`);
      await eventually(
        async () => expect([await all('machines', 'g-'), await leftOf('g-')]).toEqual([[], []]),
        PATIENCE,
      );
    });

    const reports =
      (status: object): SimProvider['outcomeOf'] =>
      () => ({ status });

    // promise: cluster-api/contracts-providers/become-codes-drivers-insufficientresources
    test('what a provider reports is told with the code that it means, and what it made goes', async () => {
      const fates: Readonly<
        Record<string, { readonly status?: object; readonly className?: string; readonly says: string }>
      > = {
        'e-none-left': {
          status: { failureReason: 'InsufficientResources', failureMessage: 'no hosts in zone a' },
          says: 'ResourceExhausted: MetalHost e-none-left has failed: InsufficientResources: no hosts in zone a',
        },
        'e-wrong': {
          status: { failureReason: 'InvalidConfiguration', failureMessage: 'no such image' },
          says: 'InvalidArgument: MetalHost e-wrong has failed: InvalidConfiguration: no such image',
        },
        'e-unready': {
          status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Foo', message: 'bar' }] },
          says: 'VMBeingCreated: The VM is being created: MetalHost e-unready is not ready: Foo: bar',
        },
        'e-untemplated': {
          className: 'untemplated',
          says: 'InvalidArgument: providerSpec.infrastructureRef: MetalHostTemplate big in namespace shoot does not exist: create it, or correct the reference',
        },
        'e-clusterless': {
          className: 'clusterless',
          says: 'InvalidArgument: providerSpec.clusterName: Cluster gone does not exist in namespace shoot: create it, or correct the name',
        },
      };
      metal.outcomeOf = (object) => {
        const { status } = fates[object.metadata.name] ?? {};
        return status === undefined ? 'provisioned' : reports(status)(object);
      };
      const spec = { ...providerSpec, infrastructureRef: { ...templateOf(METAL), name: 'small' } };
      await applyClass('untemplated', { ...spec, infrastructureRef: { ...spec.infrastructureRef, name: 'big' } });
      await applyClass('clusterless', { ...spec, clusterName: 'gone' });
      for (const [name, { className = 'metal' }] of Object.entries(fates)) {
        const machine = { spec: { class: { kind: 'MachineClass', name: className } } };
        await api.send('POST', COLLECTIONS.machines, {
          apiVersion: API_VERSION,
          kind: 'Machine',
          metadata: { name, namespace: NAMESPACE },
          ...machine,
        });
      }

      for (const [name, { says }] of Object.entries(fates)) {
        await eventually(async () => {
          const { status } = await api.send<Machine>('GET', `${COLLECTIONS.machines}/${name}`);
          const { errorCode, description } = status?.lastOperation ?? {};
          expect(`${errorCode}: ${description}`).toContain(says.slice(says.indexOf(': ') + 2));
          expect(errorCode ?? '').toBe(says.split(':')[0]);
        }, PATIENCE);
      }
      // Of a driver that did not die: the Secret goes with its Machine, whoever deletes that.
      const { metadata: owner } = await api.send<ClusterAPIMachine>('GET', `${COLLECTIONS.theirs}/e-none-left`);
      const secret = await api.send<Secret>('GET', `${COLLECTIONS.secrets}/e-none-left-userdata`);
      expect(secret.metadata.ownerReferences).toMatchObject([{ kind: 'Machine', uid: owner.uid }]);
      for (const name of Object.keys(fates)) await api.send('DELETE', `${COLLECTIONS.machines}/${name}`);
      await eventually(
        async () => expect([await all('machines', 'e-'), await leftOf('e-')]).toEqual([[], []]),
        PATIENCE,
      );
      expect(metal.instances.has('e-wrong')).toBe(false);
    });
  });

  /** A driver in this process, which dies at a mutation; what it asked is written down. */
  const asked: RequestRecord[] = [];

  async function mortal(crash: CrashPoint): Promise<ClusterAPIDriver> {
    const clock = new SystemClock();
    const endpoint = await loadEndpoint({ kubeconfig, clock, env: {} });
    const onRequest = (record: RequestRecord): void => void asked.push(record);
    const transport = new Transport({ endpoint, clock, userAgent: 'machinist/test', onRequest });
    const writer = new GatedWriter({ transport, gate: openGate, cluster: 'target', intercept: crash.intercept });
    return new ClusterAPIDriver({
      reader: new HttpReader(transport),
      writer,
      clock,
      servedAs: (resource) => apiVersionOf(transport.served.current(resource)),
      log: silentLogger,
      close: () => transport.close(),
    });
  }

  describe('a driver that dies or loses an answer', () => {
    /** More mutations than a creation, and a deletion, have. */
    const NUMBERS = [1, 2, 3, 4, 5];
    const configured = classOf('crash', {
      ...providerSpec,
      bootstrap: { configRef: { ...templateOf(SIM_CONFIG), name: 'w' } },
    });
    const plain = classOf('crash', providerSpec);

    /** Repeats a call with a driver that dies, then with another one, until it succeeds. */
    async function through<T>(crash: CrashPoint, send: (driver: ClusterAPIDriver) => Promise<T>): Promise<T> {
      await using stack = new AsyncDisposableStack();
      const open = async (point: CrashPoint): Promise<ClusterAPIDriver> => {
        const one = await mortal(point);
        stack.defer(() => one.close());
        return one;
      };
      let isDead = false;
      void crash.died.then(() => (isDead = true));
      const first = await open(crash);
      await eventually(async () => {
        if (!isDead) await send(first);
      }, PATIENCE);
      const next = await open(new CrashPoint(0, 'before'));
      return await eventually(() => send(next), PATIENCE);
    }

    /** A machine is made and deleted, and the n-th mutation of each is hit. */
    async function live(point: Point, n: number, machineClass: MachineClass, name: string): Promise<void> {
      const request = requestOf(name, machineClass);
      const { providerID } = await through(new CrashPoint(n, point), (one) => one.createMachine(request, callOf()));
      await using stack = new AsyncDisposableStack();
      const whole = await mortal(new CrashPoint(0, 'before'));
      stack.defer(() => whole.close());
      const listed = (await whole.listMachines(request, callOf())).filter(({ machineName }) => machineName === name);
      expect(listed).toEqual([{ providerID, machineName: name, machineUID: `u-${name}`, machineNamespace: NAMESPACE }]);
      await through(new CrashPoint(n, point), async (one) => {
        const answer = await one.deleteMachine(request, callOf()).catch((err: unknown) => err);
        expect(answer).toMatchObject({ code: 'NotFound' });
      });
      expect({ name, left: await leftOf(name), made: simulated.instancesOf(name) }).toEqual({
        name,
        left: [],
        made: 1,
      });
    }

    // promise: machines-cluster-api/wherever-driver-dies-loses
    // promise: cluster-api/machinedeployments/driver-die-lose-answer
    test.each(POINTS)(
      'at each mutation, %s, has made one machine in the end, and leaves nothing of it',
      async (point) => {
        simulated.hasNodes = false;
        const lives = [plain, configured].flatMap((machineClass, which) =>
          NUMBERS.map((n) => live(point, n, machineClass, `k-${point}-${which}-${n}`)),
        );
        await Promise.all(lives);
      },
    );

    // promise: machines-cluster-api/driver-began-machine-found
    // promise: cluster-api/machinedeployments/began-found-lists
    test.each([
      { what: 'a Secret', machineClass: plain, n: 2 },
      { what: 'objects of providers', machineClass: configured, n: 3 },
    ])('what is left of a machine that was begun is found in a list, and goes: $what', async ({ machineClass, n }) => {
      const name = `h-${n}`;
      const crash = new CrashPoint(n, 'before');
      await using stack = new AsyncDisposableStack();
      const [dying, whole] = [await mortal(crash), await mortal(new CrashPoint(0, 'before'))];
      for (const one of [dying, whole]) stack.defer(() => one.close());
      const request = requestOf(name, machineClass);
      await expect(dying.createMachine(request, callOf())).rejects.toThrow('the process has died');

      await expect(whole.getMachineStatus(request, callOf())).rejects.toMatchObject({ code: 'Uninitialized' });
      const listed = (await whole.listMachines(request, callOf())).filter(({ machineName }) => machineName === name);
      const providerID = `cluster-api:///${NAMESPACE}/${name}/u-${name}`;
      expect(listed).toEqual([{ providerID, machineName: name, machineUID: `u-${name}`, machineNamespace: NAMESPACE }]);
      // Told by its id alone; whose name the machine has by now does not count.
      await whole.deleteMachine(stubOf('other', providerID, machineClass), callOf());
      expect(await leftOf(name)).toEqual([]);
      await expect(whole.getMachineStatus(request, callOf())).rejects.toMatchObject({ code: 'NotFound' });
    });

    describe('of a kind that the class names no more', () => {
      const edited = classOf('crash', {
        ...providerSpec,
        infrastructureRef: { ...templateOf(METAL), name: 'small' },
        bootstrap: { dataSecretName: 'of-somebody' },
      });

      beforeAll(async () => {
        await api.send('POST', COLLECTIONS.secrets, {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'of-somebody', namespace: NAMESPACE },
          stringData: { value: '#!/bin/sh' },
        });
      });

      /** The Secret is made, then the infrastructure; not the Machine, which would say of which kind that is. */
      async function begun(name: string, stack: AsyncDisposableStack): Promise<ClusterAPIDriver> {
        const [dying, whole] = [await mortal(new CrashPoint(3, 'before')), await mortal(new CrashPoint(0, 'before'))];
        for (const one of [dying, whole]) stack.defer(() => one.close());
        await expect(dying.createMachine(requestOf(name, plain), callOf())).rejects.toThrow('the process has died');
        expect(await all('simulated', name)).toHaveLength(1);
        return whole;
      }

      test('what was made goes with its machine', async () => {
        await using stack = new AsyncDisposableStack();
        const whole = await begun('o-kept', stack);
        const request = requestOf('o-kept', edited);
        await whole.createMachine(request, callOf()).catch(() => undefined);

        await eventually(async () => {
          const answer = await whole.deleteMachine(request, callOf()).catch((err: unknown) => err);
          expect(answer).toMatchObject({ code: 'NotFound' });
        }, PATIENCE);

        expect(await leftOf('o-kept')).toEqual([]);
      });

      test('what was made is listed, and goes, when the machine is forgotten', async () => {
        await using stack = new AsyncDisposableStack();
        const whole = await begun('o-forgotten', stack);
        const request = requestOf('o-forgotten', edited);

        const listed = await whole.listMachines(request, callOf());
        const providerID = `cluster-api:///${NAMESPACE}/o-forgotten/u-o-forgotten`;
        expect(listed).toContainEqual(expect.objectContaining({ providerID, machineUID: 'u-o-forgotten' }));
        await whole.deleteMachine(stubOf('other', providerID, edited), callOf());

        expect(await leftOf('o-forgotten')).toEqual([]);
      });
    });

    // promise: machines-cluster-api/objects-name-machine-used
    // promise: cluster-api/machinedeployments/objects-name-machine-used
    test('what somebody else made is in the way, and neither used nor deleted', async () => {
      await using stack = new AsyncDisposableStack();
      const whole = await mortal(new CrashPoint(0, 'before'));
      stack.defer(() => whole.close());
      await sim.create(SIM_MACHINE, 'foreign');
      const request = requestOf('foreign', plain);

      await expect(whole.createMachine(request, callOf())).rejects.toMatchObject({
        code: 'AlreadyExists',
        detail: 'SimMachine foreign already exists and does not belong to this machine: delete or rename it',
      });
      await expect(whole.getMachineStatus(request, callOf())).rejects.toMatchObject({ code: 'NotFound' });
      await expect(whole.deleteMachine(request, callOf())).rejects.toMatchObject({ code: 'NotFound' });
      expect(await leftOf('foreign')).toEqual(['foreign']);
      await sim.delete(SIM_MACHINE, 'foreign');
    });
  });

  // promise: cluster-api/machinedeployments/pool-class-nodetemplate-grows
  test('what a provider tells of a template is read for scaling from zero, with the permissions of the manager', async () => {
    const endpoint = await loadEndpoint({
      kubeconfig: await plane.connection.kubeconfigFor({ user: 'machinist' }),
      clock: new SystemClock(),
      env: {},
    });
    const transport = new Transport({ endpoint, clock: new SystemClock(), userAgent: 'machinist/test' });
    await using stack = new AsyncDisposableStack();
    stack.defer(() => transport.close());
    const capacity = { cpu: '4', memory: '16Gi' };
    await sim.create(templateOf(SIM_MACHINE), 'told');
    await sim.report(templateOf(SIM_MACHINE), 'told', { capacity, nodeInfo: { architecture: 'arm64' } });
    const told = { ...providerSpec, infrastructureRef: { ...providerSpec.infrastructureRef, name: 'told' } };

    const { signal } = new AbortController();
    const announced = await readAnnounced(new HttpReader(transport), classOf('told', told), signal);
    expect(announced).toMatchObject({ nodeTemplate: { capacity, architecture: 'arm64' } });
    expect(await readAnnounced(new HttpReader(transport), classOf('small', providerSpec), signal)).toBeUndefined();
  });

  // promise: cluster-api/machinedeployments/driver-permissions-uses-more
  test('the driver uses every permission of its roles, and is refused nothing', () => {
    const manifests = readManifests(path.join(import.meta.dirname, '../../deploy/rbac'));
    const roles = manifests.filter(
      ({ kind, metadata }) => kind.endsWith('Role') && metadata.name.startsWith('machinist-cluster-api-driver'),
    );
    const kinds = new Map([
      [SIM_MACHINE.apiGroup, 'simmachines'],
      [SIM_CONFIG.apiGroup, 'simconfigs'],
    ] as const);
    const granted = roles
      .flatMap((role) => (role as unknown as { rules: Rule[] }).rules)
      .flatMap(({ apiGroups: [group = ''], resources, verbs }) =>
        resources.flatMap((one) => verbs.map((verb) => `${verb} ${one === '*' ? kinds.get(group as never) : one}`)),
      );
    const used = new Set(asked.map(({ verb, resource }) => `${verb} ${resource}`));

    expect(roles).toHaveLength(2);
    expect(granted.filter((one) => !used.has(one))).toEqual([]);
    expect(asked.filter(({ code }) => code === 401 || code === 403)).toEqual([]);
  });

  test('the providers had no trouble', () => {
    expect([...simulated.failures, ...metal.failures]).toEqual([]);
  });
});

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
