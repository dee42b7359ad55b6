import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { applyManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import type { Finding } from '../../cmd/machinist/preflight/findings.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { RequestRecord } from '../../pkg/kube/client/transport.ts';
import { CELL_LEASES, CellsManager } from '../cloud/cells-manager.ts';
import { TestCell } from '../cloud/cell.ts';
import { Site } from '../cloud/site.ts';
import { Program } from '../e2e/program.ts';
import { WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { allows, grant } from './shipped-roles.ts';

/*
 * Cells that are named: the manager's user has the roles that are shipped for them, and may do nothing else there.
 */
const TEST_MS = 300_000;
const PATIENCE = { timeoutMs: 90_000, intervalMs: 100 };
const RBAC = 'rbac.authorization.k8s.io';

let control: Site;

beforeAll(async () => {
  // Whose controllers end namespaces.
  control = await Site.drawnControl(['named-cells', 'control-identity'], {
    endsNamespaces: true,
    controllerManager: true,
    ...WITHOUT_KUBELETS,
  });
}, TEST_MS);

afterAll(async () => {
  await control[Symbol.asyncDispose]();
});

async function cellOf(provider: string, roles: 'cell' | 'none' = 'cell'): Promise<TestCell> {
  return await TestCell.create(control, provider, { replicas: 1, roles });
}

/** A manager of these cells, and of further namespaces. */
async function start(
  cells: readonly TestCell[],
  {
    others = [],
    flags = {},
    onRequest,
  }: {
    readonly others?: readonly string[];
    readonly flags?: Readonly<Record<string, string>>;
    readonly onRequest?: (record: RequestRecord) => void;
  } = {},
): Promise<CellsManager> {
  return await CellsManager.start({
    kubeconfig: control.kubeconfig,
    namespace: CELL_LEASES,
    drivers: cells.map(({ driver }) => driver).join(','),
    flags: {
      cells: '',
      'cell-namespaces': [...cells.map(({ namespace }) => namespace), ...others].join(','),
      ...flags,
    },
    ...(onRequest && { hooks: { onRequest } }),
  });
}

async function untilRefused(manager: CellsManager, namespace: string, why: RegExp): Promise<void> {
  await eventually(async () => {
    expect(await manager.page('/readyz?verbose')).toMatch(new RegExp(`cell ${namespace}: ${why.source}`));
    expect(await manager.page('/metrics')).toContain(`machinist_cell_refused{cell="${namespace}"} 1`);
  }, PATIENCE);
}

/** A role for the manager's user in one namespace, in place of the one that is shipped. */
async function permit(namespace: string, rules: readonly object[]): Promise<void> {
  const apiVersion = `${RBAC}/v1`;
  const metadata = { name: 'some', namespace };
  const manifests: readonly Manifest[] = [
    { apiVersion, kind: 'Role', metadata, rules },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'Role', name: 'some' },
      subjects: [{ apiGroup: RBAC, kind: 'User', name: 'machinist' }],
    },
  ];
  await applyManifests(control.api, manifests);
}

async function mayMachinist(verb: string, resource: string, namespace?: string): Promise<boolean> {
  return await allows(control.api, { user: 'machinist', resourceAttributes: { verb, resource, namespace } });
}

const bindingIn = (namespace: string): string =>
  `/apis/${RBAC}/v1/namespaces/${namespace}/rolebindings/machinist-machines`;

/** Takes the shipped roles of a cell away, as somebody does who removes the finalizer as well. */
async function unbind(namespace: string): Promise<void> {
  await control.api.send('PATCH', bindingIn(namespace), { metadata: { finalizers: null } });
  await control.api.send('DELETE', bindingIn(namespace));
}

test(
  'each named namespace has its machines, under roles that permit nothing in any other',
  async () => {
    await using one = await cellOf('one');
    await using other = await cellOf('other');
    await using unnamed = await cellOf('unnamed', 'none');
    const refused: RequestRecord[] = [];
    await using manager = await start([one, other], {
      flags: { 'leader-elect': 'true' },
      onRequest: (record) => {
        // Of a RoleBinding it is asked whether it is still stored, which needs no answer.
        if (record.code === 403 && record.resource !== 'rolebindings') refused.push(record);
      },
    });
    await one.pool.untilUp(1);
    await other.pool.untilUp(1);
    await one.mark(control, { annotations: { 'cell.machine.sapcloud.io/safety-up': '3' } });
    await one.pool.scale(2);
    await one.pool.untilUp(2);

    expect(unnamed.cloud.created).toEqual([]);
    expect(refused).toEqual([]);
    const metrics = await manager.page('/metrics');
    for (const { namespace } of [one, other]) {
      expect(metrics).toContain(`machinist_cluster_outage{cluster="control",cell="${namespace}"} 0`);
      expect(await mayMachinist('list', 'secrets', namespace)).toBe(true);
    }
    for (const namespace of [unnamed.namespace, CELL_LEASES, undefined]) {
      expect(await mayMachinist('list', 'secrets', namespace)).toBe(false);
      expect(await mayMachinist('get', 'namespaces', namespace)).toBe(false);
    }
    expect(await mayMachinist('list', 'namespaces')).toBe(false);
  },
  TEST_MS,
);

test(
  'a namespace without permissions concerns itself alone, says what to apply, and begins when that was applied',
  async () => {
    await using without = await cellOf('without', 'none');
    await using few = await cellOf('few', 'none');
    await using well = await cellOf('well');
    await permit(few.namespace, [
      { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
      { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
    ]);
    await using manager = await start([without, few, well]);

    await untilRefused(
      manager,
      without.namespace,
      /Namespace t-\w+ does not exist, or its RoleBinding is missing; apply deploy\/rbac\/cell\.yaml, and deploy\/cell-namespace\.yaml/,
    );
    await untilRefused(
      manager,
      few.namespace,
      /missing permissions in the control cluster: .* in namespace t-\w+.*: apply deploy\/rbac\/cell\.yaml and deploy\/cell-namespace\.yaml/,
    );
    await well.pool.untilUp(1);
    const { items } = await control.api.send<{ items: { reason: string; message: string }[] }>(
      'GET',
      `/api/v1/namespaces/${few.namespace}/events?fieldSelector=involvedObject.kind=Namespace`,
    );
    expect(items).toContainEqual(
      expect.objectContaining({
        reason: 'MissingPermissions',
        message: expect.stringMatching(/apply deploy\/rbac\/cell\.yaml .*Machines are not managed\.$/),
      }),
    );
    expect(await manager.page('/readyz')).toBe('ok');

    for (const { namespace } of [without, few]) await grant(control.api, 'cell', namespace);
    await without.pool.untilUp(1);
    await few.pool.untilUp(1);
    expect(await manager.page('/metrics')).not.toContain('machinist_cell_refused{');
  },
  TEST_MS,
);

test(
  'permissions that are taken away while a cell runs concern itself alone',
  async () => {
    await using cell = await cellOf('cell');
    await using other = await cellOf('other');
    await using manager = await start([cell, other]);
    await cell.pool.untilUp(1);
    await other.pool.untilUp(1);

    await unbind(cell.namespace);
    await untilRefused(manager, cell.namespace, /Namespace t-\w+ does not exist, or its RoleBinding is missing/);
    await cell.pool.scale(2);
    await other.pool.scale(2);
    await other.pool.untilUp(2);
    expect(cell.cloud.created).toHaveLength(1);

    await grant(control.api, 'cell', cell.namespace);
    await cell.pool.untilUp(2);
    expect(cell.cloud.created).toHaveLength(2);
  },
  TEST_MS,
);

test(
  'a named namespace that is deleted loses its machines first, and is managed again when it is back',
  async () => {
    await using cell = await cellOf('cell');
    await using other = await cellOf('other');
    await using manager = await start([cell, other], {
      flags: { 'target-kubeconfig': 'none', 'cell-kubeconfig-secret': '' },
    });
    const { namespace } = cell;
    const path = `/api/v1/namespaces/${namespace}`;
    await eventually(async () => {
      const [machine] = await cell.pool.machines();
      expect(machine?.status?.currentStatus?.phase).toBe('Available');
      // Only then does it outlive the deletion of all else in the namespace.
      const { items } = await control.api.send<{ items: KubeObject[] }>('GET', `${path}/secrets`);
      expect(items.find(({ metadata }) => metadata.name !== 'target')?.metadata.finalizers).toHaveLength(1);
    }, PATIENCE);

    await control.api.send('DELETE', path);
    await eventually(async () => expect((await control.api.request(path)).status).toBe(404), PATIENCE);
    expect(await cell.cloud.vms()).toEqual([]);
    await untilRefused(manager, namespace, /Namespace t-\w+ does not exist/);
    await other.pool.scale(2);
    await eventually(() => expect(other.cloud.created).toHaveLength(2), PATIENCE);

    await control.api.send('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    await grant(control.api, 'cell', namespace);
    await eventually(() => expect(manager.process.cells.running.has(namespace)).toBe(true), PATIENCE);
  },
  TEST_MS,
);

test(
  'of two named namespaces with the same target cluster, the second waits and says so',
  async () => {
    await using cell = await cellOf('cell');
    await using twin = await cellOf('twin', 'none');
    await using manager = await start([cell, twin]);
    await cell.pool.untilUp(1);

    await twin.setKubeconfig(control, cell.kubeconfig);
    await grant(control.api, 'cell', twin.namespace);
    await eventually(async () => {
      expect(await manager.page('/readyz?verbose')).toMatch(`cell ${twin.namespace}`);
      expect(manager.process.cells.taken.get(twin.namespace)).toMatch(
        new RegExp(`^Its target cluster is that of namespace ${cell.namespace}, too`),
      );
    }, PATIENCE);
    expect(twin.cloud.created).toEqual([]);
  },
  TEST_MS,
);

test(
  'preflight names what to apply in each namespace',
  async () => {
    await using well = await cellOf('well');
    await using without = await cellOf('without', 'none');

    const { stdout, code } = await Program.run('machinist', [
      'preflight',
      `--control-kubeconfig=${control.kubeconfig}`,
      `--namespace=${CELL_LEASES}`,
      `--cell-namespaces=${well.namespace},${without.namespace}`,
      '--cell-kubeconfig-secret=target',
      '--output=json',
    ]);

    const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
    const ofCells = findings.filter(({ check }) => check === 'cells' || check === 'permissions');
    expect(code).toBe(1);
    expect(ofCells).toContainEqual({ check: 'cells', status: 'ok', detail: '--cell-namespaces names 2 namespaces' });
    expect(ofCells).toContainEqual(
      expect.objectContaining({
        cell: without.namespace,
        status: 'fail',
        remedy:
          'kubectl apply -f deploy/rbac/cell.yaml -f deploy/cell-namespace.yaml, after adapting the namespace and the subjects',
      }),
    );
    expect(ofCells.filter(({ status }) => status === 'fail')).toHaveLength(1);
  },
  TEST_MS,
);
