import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Status } from 'nice-grpc';

import { NODE_GROUP_MAX_ANNOTATION, NODE_GROUP_MIN_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { replicaFor } from '../../pkg/operator/cells/assignment.ts';
import { CELL_CLIENT_NAME } from '../../pkg/operator/config/cells.ts';
import { type AutoscalerClient, AutoscalerClients, Balancer, PortLog } from '../cloud/autoscaler-clients.ts';
import { TestCell } from '../cloud/cell.ts';
import { CELL_LEASES, cellsControl, CellsManager, QUICK_LEASES } from '../cloud/cells-manager.ts';
import type { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

const TEST_MS = 300_000;
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
const GROUP = '/apis/machine.sapcloud.io/v1alpha1';

let control: Site;
let clients: AutoscalerClients;

beforeAll(async () => {
  control = await cellsControl();
  clients = await AutoscalerClients.create();
});

afterAll(async () => {
  clients[Symbol.dispose]();
  await control[Symbol.asyncDispose]();
});

/** A selected namespace with a node group, whose autoscaler is named `as-<name>`. */
async function cellOf(name: string, replicas: number): Promise<TestCell> {
  const cell = await TestCell.create(control, name, { replicas });
  await limit(cell, 'pool', 0, 5);
  await cell.mark(control, { labels: { cell: '' }, annotations: { [CELL_CLIENT_NAME]: `as-${name}` } });
  return cell;
}

async function limit({ namespace }: TestCell, name: string, min: number, max: number): Promise<void> {
  const annotations = { [NODE_GROUP_MIN_ANNOTATION]: String(min), [NODE_GROUP_MAX_ANNOTATION]: String(max) };
  const path = `${GROUP}/namespaces/${namespace}/machinedeployments/${name}`;
  await control.api.send('PATCH', path, { metadata: { annotations } });
}

/** Another group, without machines. */
async function addGroup(cell: TestCell, name: string): Promise<void> {
  const { spec } = await cell.pool.deployment();
  const labels = { group: name };
  const template = { ...spec?.template, metadata: { labels } };
  await control.api.send('POST', `${GROUP}/namespaces/${cell.namespace}/machinedeployments`, {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'MachineDeployment',
    metadata: { name },
    spec: { ...spec, replicas: 0, selector: { matchLabels: labels }, template },
  });
  await limit(cell, name, 0, 5);
}

async function sizeOf({ namespace }: TestCell, name: string): Promise<number> {
  const path = `${GROUP}/namespaces/${namespace}/machinedeployments/${name}`;
  const { spec } = await control.api.send<MachineDeployment>('GET', path);
  return spec?.replicas ?? 0;
}

async function start(
  cells: readonly TestCell[],
  flags: Readonly<Record<string, string>> = {},
): Promise<CellsManager & { readonly port: string }> {
  const { log, address } = withPort();
  const drivers = cells.map(({ driver }) => driver).join(',');
  const all = { ...clients.flags, ...flags };
  const manager = await CellsManager.start({
    kubeconfig: control.kubeconfig,
    namespace: CELL_LEASES,
    drivers,
    flags: all,
    log,
  });
  return Object.assign(manager, { port: await address() });
}

function withPort() {
  const log = new PortLog();
  return { log: log.log, address: () => log.address() };
}

/** What a loop of an autoscaler begins with, once it is answered. */
async function groupsFor(client: AutoscalerClient): Promise<readonly string[]> {
  return await eventually(async () => {
    await client.refresh({});
    const { nodeGroups } = await client.nodeGroups({});
    return nodeGroups.map(({ id }) => id);
  }, PATIENCE);
}

async function refusal(call: Promise<unknown>): Promise<{ readonly code: Status; readonly details: string }> {
  return await call.then(
    () => Promise.reject(new Error('it was not refused')),
    (err: unknown) => err as { code: Status; details: string },
  );
}

const named = ({ metadata, spec }: Node) => ({
  providerId: spec?.providerID ?? '',
  name: metadata.name,
  labels: {},
  annotations: {},
});

async function eventsIn(namespace: string): Promise<string> {
  const { items } = await control.api.send<{ items: { reason: string; message: string }[] }>(
    'GET',
    `/api/v1/namespaces/${namespace}/events?fieldSelector=involvedObject.kind=Namespace`,
  );
  return items.map(({ reason, message }) => `${reason}: ${message}`).join('\n');
}

describe('the port for autoscalers of many namespaces', () => {
  test(
    'shows and scales for each client what is in its own namespace, and nothing of another one',
    async () => {
      await using one = await cellOf('one', 1);
      await using other = await cellOf('other', 2);
      await addGroup(other, 'hidden');
      await using manager = await start([one, other]);
      await one.pool.untilUp(1);
      await other.pool.untilUp(2);
      const ofOne = await clients.connect(manager.port, 'as-one');
      const ofOther = await clients.connect(manager.port, 'as-other');
      expect(await groupsFor(ofOne)).toEqual(['pool']);
      expect(await groupsFor(ofOther)).toEqual(['hidden', 'pool']);

      // What is there and somebody else's is as if it were not.
      const texts: string[] = [];
      for (const id of ['hidden', 'nowhere', `${other.namespace}/hidden`, `${other.namespace}/nowhere`]) {
        for (const call of [
          ofOne.nodeGroupIncreaseSize({ id, delta: 1 }),
          ofOne.nodeGroupDecreaseTargetSize({ id, delta: -1 }),
          ofOne.nodeGroupDeleteNodes({ id, nodes: [] }),
          ofOne.nodeGroupTargetSize({ id }),
          ofOne.nodeGroupNodes({ id }),
          ofOne.nodeGroupTemplateNodeInfo({ id }),
          ofOne.nodeGroupGetOptions({ id, defaults: undefined }),
        ]) {
          const { code, details } = await refusal(call);
          expect(code).toBe(Status.NOT_FOUND);
          texts.push(details.replaceAll(id, 'ID'));
        }
      }
      expect([...new Set(texts)]).toHaveLength(1);

      // The other's Nodes, also where one of the same name is in the own cluster, or a placeholder names the other's Machine.
      const [target, spared] = (await other.pool.nodes()) as [Node, Node];
      const [machine] = await other.pool.machines();
      await one.target.api.send('POST', '/api/v1/nodes', { metadata: { name: target.metadata.name } });
      const forms = [
        named(target),
        { ...named(target), providerId: '' },
        { ...named(spared), name: '' },
        { ...named(spared), name: '', providerId: `requested://${machine?.metadata.name}` },
        { ...named(spared), name: '', providerId: `requested://hidden#0-0` },
      ];
      await eventually(async () => {
        const { nodeGroup } = await ofOther.nodeGroupForNode({ node: named(target) });
        expect(nodeGroup?.id).toBe('pool');
      }, PATIENCE);
      for (const node of forms) {
        const { nodeGroup } = await ofOne.nodeGroupForNode({ node });
        expect(nodeGroup?.id).toBe('');
        await ofOne.nodeGroupDeleteNodes({ id: 'pool', nodes: [node] }).catch(() => undefined);
      }
      expect(await sizeOf(other, 'pool')).toBe(2);
      expect(await sizeOf(one, 'pool')).toBe(1);
      expect(other.cloud.removed).toEqual([]);
      expect(one.cloud.removed).toEqual([]);

      await ofOther.nodeGroupDeleteNodes({ id: 'pool', nodes: [named(target)] });
      await ofOne.nodeGroupIncreaseSize({ id: 'pool', delta: 1 });
      await eventually(async () => {
        expect((await other.pool.nodes()).map(({ metadata }) => metadata.name)).toEqual([spared.metadata.name]);
      }, PATIENCE);
      await one.pool.untilUp(2);
      expect(other.cloud.removed).toEqual([target.spec?.providerID]);
      const metrics = await manager.page('/metrics');
      expect(metrics).toContain(
        `machinist_autoscaler_node_group_size{namespace="${one.namespace}",group="pool",of="target",cell="${one.namespace}"} 2`,
      );
      expect(metrics).toMatch(
        new RegExp(`machinist_autoscaler_request_duration_seconds_count\\{[^}]*cell="${other.namespace}"`),
      );
    },
    TEST_MS,
  );

  test(
    'serves no client but those that a namespace names at that moment, and none that two name',
    async () => {
      await using one = await cellOf('one', 0);
      await using other = await cellOf('other', 0);
      await using manager = await start([one, other]);
      const client = await clients.connect(manager.port, 'as-one');
      expect(await groupsFor(client)).toEqual(['pool']);

      const stranger = await clients.connect(manager.port);
      expect(await refusal(stranger.nodeGroups({}))).toMatchObject({ code: Status.UNAUTHENTICATED });
      // The name that is usual where a process has one namespace.
      const usual = await clients.connect(manager.port, 'cluster-autoscaler');
      const { code, details } = await refusal(usual.nodeGroups({}));
      expect(code).toBe(Status.PERMISSION_DENIED);
      expect(details).toContain(`"cluster-autoscaler"; none of the namespaces that --cells selects permits it`);
      expect(details).not.toContain('as-one');

      await other.mark(control, { annotations: { [CELL_CLIENT_NAME]: 'as-other, as-one' } });
      await eventually(async () => {
        const clash = await refusal(client.refresh({}));
        expect(clash.code).toBe(Status.PERMISSION_DENIED);
        expect(clash.details).toContain('a client may have only one');
        expect(clash.details).not.toContain(other.namespace);
      }, PATIENCE);
      for (const [{ namespace }, { namespace: another }] of [
        [one, other],
        [other, one],
      ] as const) {
        const told = (whose: string): string => `"as-one" is also a name of ${whose}, so`;
        await eventually(
          async () =>
            expect(await eventsIn(namespace)).toMatch(
              new RegExp(`^AutoscalerNameTaken: .*${told('another namespace')}`, 'm'),
            ),
          PATIENCE,
        );
        expect(await manager.page('/readyz?verbose')).toContain(
          `cell ${namespace}: annotation ${CELL_CLIENT_NAME}: ${told(`namespace ${another}`)}`,
        );
      }
      expect(await groupsFor(await clients.connect(manager.port, 'as-other'))).toEqual(['pool']);

      await other.mark(control, { annotations: { [CELL_CLIENT_NAME]: 'as-other' } });
      expect(await groupsFor(client)).toEqual(['pool']);
      // Taken back at once, although another setting is wrong and the cell goes on with what it had.
      const wrong = { 'cell.machine.sapcloud.io/machine-drain-timeout': 'soon' };
      await one.mark(control, { annotations: { ...wrong, [CELL_CLIENT_NAME]: null } });
      await eventually(async () => {
        expect((await refusal(client.refresh({}))).code).toBe(Status.PERMISSION_DENIED);
      }, PATIENCE);
      expect(manager.process.cells.running.has(one.namespace)).toBe(true);
    },
    TEST_MS,
  );

  test(
    'serves a namespace while it has its label, and a target cluster that cannot be reached concerns its own clients alone',
    async () => {
      await using one = await cellOf('one', 0);
      await using other = await cellOf('other', 0);
      await one.setKubeconfig(control, one.kubeconfig.replace(/server: .*/, 'server: https://127.0.0.1:1'));
      await using manager = await start([one, other]);
      const ofOne = await clients.connect(manager.port, 'as-one');
      const ofOther = await clients.connect(manager.port, 'as-other');
      await groupsFor(ofOther);

      await eventually(async () => {
        const { code, details } = await refusal(ofOne.refresh({}));
        expect(code).toBe(Status.UNAVAILABLE);
        expect(details).toContain('ECONNREFUSED');
      }, PATIENCE);
      await ofOther.refresh({});
      await one.setKubeconfig(control, one.kubeconfig);
      expect(await groupsFor(ofOne)).toEqual(['pool']);

      await one.mark(control, { labels: { cell: null } });
      await eventually(async () => {
        expect((await refusal(ofOne.refresh({}))).code).toBe(Status.PERMISSION_DENIED);
      }, PATIENCE);
      await ofOther.refresh({});
      await one.mark(control, { labels: { cell: '' } });
      expect(await groupsFor(ofOne)).toEqual(['pool']);
    },
    TEST_MS,
  );

  test(
    'serves nobody of a namespace whose target cluster is that of another one',
    async () => {
      await using one = await cellOf('one', 0);
      await using manager = await start([one]);
      const ofOne = await clients.connect(manager.port, 'as-one');
      await groupsFor(ofOne);

      await using twin = await cellOf('twin', 0);
      await twin.setKubeconfig(control, one.kubeconfig);
      const ofTwin = await clients.connect(manager.port, 'as-twin');
      await eventually(async () => {
        const { code, details } = await refusal(ofTwin.refresh({}));
        expect(code).toBe(Status.UNAVAILABLE);
        expect(details).toContain('target cluster is that of another namespace, too');
        expect(details).not.toContain(one.namespace);
      }, PATIENCE);
      expect(await refusal(ofTwin.nodeGroupIncreaseSize({ id: 'pool', delta: 1 }))).toMatchObject({
        code: Status.UNAVAILABLE,
      });
      expect(await sizeOf(twin, 'pool')).toBe(0);
      await ofOne.refresh({});
    },
    TEST_MS,
  );

  test(
    'of several replicas behind one address, a client is answered by the one that manages its namespace, wherever that moves',
    async () => {
      await using stack = new AsyncDisposableStack();
      const cells: TestCell[] = [];
      for (let i = 0; i < 3; i++) cells.push(stack.use(await cellOf(`provider${i}`, 0)));
      const first = stack.use(await start(cells, QUICK_LEASES));
      const second = stack.use(await start(cells, QUICK_LEASES));
      const replicas = [first, second];
      const names = replicas.map(({ identity }) => identity);
      // Nothing moves any more.
      await eventually(() => {
        for (const { identity, process } of replicas) {
          const own = Array.from({ length: 16 }, (_, index) => index).filter((i) => replicaFor(i, names) === identity);
          expect(process.shards.held.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual(own);
        }
      }, PATIENCE);
      using balancer = stack.use(await Balancer.before(first.port, second.port));

      for (const [i, { namespace }] of cells.entries()) {
        const client = await clients.connect(balancer.address, `as-provider${i}`);
        expect(await groupsFor(client)).toEqual(['pool']);
        await client.nodeGroupIncreaseSize({ id: 'pool', delta: 1 });
        expect(await sizeOf(cells[i] as TestCell, 'pool')).toBe(1);
        // Each call of one that connects is answered at once, wherever its connection begins, and no other client takes it away.
        for (let connected = 0; connected < 3; connected++) {
          const other = await clients.connect(balancer.address, `as-provider${i}`);
          expect((await other.nodeGroups({})).nodeGroups).toHaveLength(1);
        }
        const { connections } = balancer;
        await client.refresh({});
        expect(balancer.connections).toBe(connections);
        const holder = replicas.find(({ process }) => process.cells.running.has(namespace));
        expect(holder).toBeDefined();
      }

      expect(await first.terminate()).toBe(0);
      using alone = stack.use(await Balancer.before(second.port));
      for (const i of cells.keys()) {
        const client = await clients.connect(alone.address, `as-provider${i}`);
        expect(await groupsFor(client)).toEqual(['pool']);
      }
    },
    TEST_MS,
  );
});
