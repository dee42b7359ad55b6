import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { applyManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import type { Finding } from '../../cmd/machinist/preflight/findings.ts';
import type { WorkInProgress } from '../../pkg/health/work-in-progress.ts';
import { CELL_CLIENT_NAME } from '../../pkg/operator/config/cells.ts';
import { CELL_LEASES, cellsControl, CellsManager } from '../cloud/cells-manager.ts';
import { TestCell } from '../cloud/cell.ts';
import type { Site } from '../cloud/site.ts';
import { Program, ROOT } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { Terminal } from '../terminal/terminal.ts';

const TEST_MS = 300_000;
const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };

let control: Site;

beforeAll(async () => {
  control = await cellsControl();
});

afterAll(async () => {
  await control[Symbol.asyncDispose]();
});

/** A manager of these cells, two of which are selected. */
async function start(...cells: readonly TestCell[]): Promise<CellsManager> {
  for (const cell of cells) await cell.mark(control, { labels: { cell: '' } });
  const drivers = cells.map(({ driver }) => driver).join(',');
  return await CellsManager.start({
    kubeconfig: control.kubeconfig,
    namespace: CELL_LEASES,
    drivers,
    flags: { 'leader-elect': 'true' },
  });
}

/** Whoever has it may read one namespace, and nothing of the manager. */
function roleOf(user: string, namespace: string): readonly Manifest[] {
  const metadata = { name: user, namespace };
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: user };
  return [
    { apiVersion, kind: 'Role', metadata, rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list'] }] },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata,
      roleRef,
      subjects: [{ apiGroup: roleRef.apiGroup, kind: 'User', name: user }],
    },
  ];
}

async function workOf(manager: CellsManager): Promise<WorkInProgress> {
  return JSON.parse(await manager.page('/work')) as WorkInProgress;
}

test(
  'what is done about the machines of each cell is served, and described of a machine',
  async () => {
    await using failing = await TestCell.create(control, 'failing', { replicas: 1 });
    await using broken = await TestCell.create(control, 'broken', { replicas: 1 });
    await broken.setKubeconfig(control, 'clusters: []');
    failing.cloud.setFaults([
      { method: 'CreateMachine', effect: 'fail', code: 'Unavailable', message: 'the cloud is closed' },
    ]);
    await using manager = await start(failing, broken);
    await eventually(async () => {
      const { retries } = await workOf(manager);
      expect(retries).toEqual([expect.objectContaining({ call: 'create', code: 'Unavailable' })]);
    }, PATIENCE);
    const { retries, cells } = await workOf(manager);
    const [namespace = '', name = ''] = retries[0]?.machine.split('/') ?? [];

    const access = [`--kubeconfig=${control.kubeconfig}`, '-n', namespace, '--url', manager.url];
    const described = await eventually(async () => {
      const printed = await Program.run('machinist', ['describe', `machine/${name}`, ...access]);
      // While an attempt runs, that is shown instead.
      expect(printed.stdout).toMatch(/^Next Attempt: +.*; create, attempt /m);
      return printed;
    }, PATIENCE);

    expect(namespace).toBe(failing.namespace);
    expect(cells).toMatchObject({ selector: 'cell', shards: 16 });
    expect(new Map(cells?.states.map(({ cell, ...state }) => [cell, state]))).toEqual(
      new Map([
        [failing.namespace, { state: 'running', troubles: [] }],
        [
          broken.namespace,
          { state: 'refused', troubles: [expect.stringMatching(/^Secret .*\/target: .*current context/)] },
        ],
      ]),
    );
    expect(described).toMatchObject({ code: 0, stderr: '' });
  },
  TEST_MS,
);

test(
  'status, top and describe find who manages a namespace, and say why one is not managed',
  async () => {
    await using healthy = await TestCell.create(control, 'healthy', { replicas: 1 });
    await using broken = await TestCell.create(control, 'broken', { replicas: 1 });
    await broken.setKubeconfig(control, 'clusters: []');
    // Left by the manager that each had for itself.
    for (const { namespace } of [healthy, broken]) {
      const left = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'machine-controller' } };
      await control.api.send('POST', `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, left);
    }
    await using manager = await start(healthy, broken);
    await healthy.pool.untilUp(1);
    const { kubeconfig } = control.plane.connection;
    const run = async (command: readonly string[], ...args: readonly string[]): ReturnType<typeof Program.run> =>
      await Program.run('machinist', [...command, `--kubeconfig=${kubeconfig}`, ...args]);
    const at = ['--manager-namespace', CELL_LEASES, '--url', manager.url];

    const lost = await run(['status'], '-n', healthy.namespace);
    const well = await run(['status'], '-n', healthy.namespace, ...at);
    const refused = await run(['status'], '-n', broken.namespace, ...at);
    const silent = await run(['status'], '-n', broken.namespace, '--manager-namespace', CELL_LEASES);
    await applyManifests(control.api, roleOf('tenant', broken.namespace));
    const tenant = await control.plane.connection.kubeconfigFor({ user: 'tenant' });
    const ofTenant = await Program.run('machinist', ['status', `--kubeconfig=${tenant}`, '-n', broken.namespace]);
    const described = await run(['describe', 'machinedeployment/pool'], '-n', broken.namespace, ...at);

    expect(ofTenant.stdout).toMatch(
      new RegExp(
        `^WARN +cells +${broken.namespace} seems to be a cell of a manager in another namespace: last Event, .*: InvalidKubeconfig: `,
        'm',
      ),
    );
    expect(lost.stdout).toMatch(
      /^FAIL +leaders .* has its Leases in namespace machinist\n +→ set --manager-namespace=machinist/m,
    );
    expect(well.stdout).toMatch(/^OK +leaders +16 of 16 shards are held by replica-\w+$/m);
    expect(well.stdout).toMatch(
      new RegExp(`^OK +cells +${healthy.namespace} is managed by ${manager.identity} \\(shard `, 'm'),
    );
    expect(well.stdout).toMatch(new RegExp(`^WARN +cells +1 of 2 cells not managed: ${broken.namespace}$`, 'm'));
    expect(refused).toMatchObject({ code: 1, stderr: '' });
    expect(refused.stdout).toMatch(
      new RegExp(`^FAIL +cells +${broken.namespace} is not managed: Secret .*current context`, 'm'),
    );
    expect(silent.stdout).toMatch(
      new RegExp(
        `^WARN +cells +${broken.namespace} belongs to ${manager.identity} .* did not answer; last Event, .*: InvalidKubeconfig: `,
        'm',
      ),
    );
    expect(described.stdout).toMatch(/^Cell: +not managed: Secret .*current context/m);

    await using terminal = await Terminal.start(
      [
        process.execPath,
        join(ROOT, 'cmd/machinist/main.ts'),
        'top',
        '-n',
        healthy.namespace,
        `--kubeconfig=${kubeconfig}`,
        ...at,
      ],
      { columns: 160, rows: 30 },
      {},
    );
    await terminal.shows(
      new RegExp(`16 of 16 shards are held by .* ${healthy.namespace} is managed by ${manager.identity}`),
    );
    await terminal.shows(new RegExp(`^! 1 of 2 cells not managed: ${broken.namespace}`, 'm'));
    terminal.type('q');
    await terminal.ended();
  },
  TEST_MS,
);

test(
  'status and describe say of machines that nobody manages, and of a namespace that does not exist',
  async () => {
    await using cell = await TestCell.create(control, 'released', { replicas: 1 });
    await using manager = await start(cell);
    const [name = ''] = await cell.pool.untilUp(1);
    const { kubeconfig } = control.plane.connection;
    const at = [`--kubeconfig=${kubeconfig}`, '--manager-namespace', CELL_LEASES, '--url', manager.url];

    await cell.mark(control, { labels: { cell: null } });
    await eventually(() => expect([...manager.process.cells.running.keys()]).not.toContain(cell.namespace), PATIENCE);
    const released = await Program.run('machinist', ['status', '-n', cell.namespace, ...at]);
    const described = await Program.run('machinist', ['describe', `machine/${name}`, '-n', cell.namespace, ...at]);
    const all = await Program.run('machinist', ['status', '-n', CELL_LEASES, ...at]);
    const missing = await Program.run('machinist', ['status', '-n', 'nowhere', ...at]);

    expect(released.code).toBe(1);
    expect(released.stdout).toMatch(
      new RegExp(
        `^FAIL +cells +${cell.namespace} is not a cell of this manager, which does not manage its Machines; their VMs keep running\n +→ label it`,
        'm',
      ),
    );
    expect(described.stdout).toMatch(/^Cell: +not managed: its namespace is not a cell of this manager$/m);
    expect(all.stdout).toMatch(
      new RegExp(`^OK +cells +Machines of .*${cell.namespace}.* are not managed by this`, 'm'),
    );
    expect(missing.code).toBe(1);
    expect(missing.stdout).toMatch(/^FAIL +cells +namespace nowhere does not exist\n +→ set -n/m);
  },
  TEST_MS,
);

test(
  'preflight looks at each selected namespace and its target cluster, and says what is wrong with which',
  async () => {
    await using healthy = await TestCell.create(control, 'healthy', { replicas: 1 });
    await using plugin = await TestCell.create(control, 'plugin', { replicas: 1 });
    await using away = await TestCell.create(control, 'away', { replicas: 1 });
    await using weak = await TestCell.create(control, 'weak', { replicas: 1 });
    await using twin = await TestCell.create(control, 'twin', { replicas: 1 });
    await using bare = await TestCell.create(control, 'bare', { replicas: 1 });
    await using inside = await TestCell.create(control, 'inside', { replicas: 1 });
    const cells = [healthy, plugin, away, weak, twin, bare, inside];
    await control.api.send('DELETE', `/api/v1/namespaces/${bare.namespace}/secrets/target`);
    const credentials = /^( +)(token|client-certificate-data):.*$/m;
    await plugin.setKubeconfig(control, plugin.kubeconfig.replace(credentials, '$1exec: {}'));
    await away.setKubeconfig(control, away.kubeconfig.replace(/server: .*/, 'server: https://127.0.0.1:1'));
    await inside.setKubeconfig(control, inside.kubeconfig.replace(/server: .*/, 'server: https://kube-apiserver'));
    const { connection } = weak.target.plane;
    await weak.setKubeconfig(control, readFileSync(await connection.kubeconfigFor({ user: 'weak' }), 'utf8'));
    await twin.setKubeconfig(control, healthy.kubeconfig);
    for (const cell of cells) await cell.mark(control, { labels: { cell: '' } });
    const setting = 'cell.machine.sapcloud.io/machine-drain-timeout';
    await away.mark(control, { annotations: { [setting]: 'never' } });
    for (const cell of [plugin, bare]) await cell.mark(control, { annotations: { [CELL_CLIENT_NAME]: 'autoscaler' } });
    const drivers = cells.map(({ driver }) => driver).join(',');
    const flags = [
      '--cells=cell',
      '--cell-kubeconfig-secret=target',
      `--namespace=${CELL_LEASES}`,
      `--driver=${drivers}`,
      '--autoscaler-grpc-address=0.0.0.0:8086',
      ...['cert', 'key', 'client-ca'].map((file) => `--autoscaler-tls-${file}=/run/${file}`),
    ];
    const run = async (...args: readonly string[]): ReturnType<typeof Program.run> =>
      await Program.run('machinist', ['preflight', ...flags, `--control-kubeconfig=${control.kubeconfig}`, ...args]);

    const { code, stdout, stderr } = await run('-o', 'json');
    const text = await run();

    const { findings } = JSON.parse(stdout) as { findings: readonly Finding[] };
    const of = ({ namespace }: TestCell): readonly string[] =>
      findings.filter(({ cell }) => cell === namespace).map(({ status, detail }) => `${status} ${detail}`);
    const server = new URL(healthy.target.plane.connection.url).origin;
    // Of two with the same target cluster, the first by name has it.
    const [first = healthy, second = twin] = [healthy, twin].toSorted((a, b) => (a.namespace < b.namespace ? -1 : 1));
    expect([code, stderr]).toEqual([1, '']);
    expect(of(first)).toEqual([expect.stringContaining(`ok ${first.namespace}: ${server}, Kubernetes v1.`)]);
    expect(of(second)).toEqual([
      expect.stringContaining(
        `fail ${second.namespace}: its target cluster is that of namespace ${first.namespace}, too`,
      ),
    ]);
    const shared = `fail NAME: annotation ${CELL_CLIENT_NAME}: "autoscaler" is also a name of namespace `;
    expect(of(plugin)).toEqual([
      expect.stringMatching(/^fail .*: Secret .*\/target: .*exec is not allowed/),
      expect.stringContaining(`${shared.replace('NAME', plugin.namespace)}${bare.namespace}, so`),
    ]);
    expect(of(bare)).toEqual([
      `fail ${bare.namespace}: Secret ${bare.namespace}/target does not exist; create it with key kubeconfig`,
      expect.stringContaining(`${shared.replace('NAME', bare.namespace)}${plugin.namespace}, so`),
    ]);
    expect(of(away)).toEqual([
      expect.stringMatching(/^fail .*: annotation cell\..*machine-drain-timeout: "never" is not valid/),
      expect.stringMatching(/^fail .*: request to https:\/\/127\.0\.0\.1:1 failed: /),
    ]);
    expect(of(inside)).toEqual([
      expect.stringContaining(`: request to https://kube-apiserver.${inside.namespace}.svc failed: `),
    ]);
    expect(of(weak).toSorted()).toEqual([
      expect.stringMatching(/^fail .*: target: the user of the kubeconfig may not get namespaces\.core kube-system/),
      expect.stringMatching(/^fail .*: target: the user of the kubeconfig may not get, list, .* nodes\.core/),
    ]);
    expect(findings.filter(({ check }) => check === 'leases').map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/^(no replica is running|\d+ replicas? runs? with --cell-shards=16)$/),
    ]);
    expect(text.stdout).toMatch(/^OK +cells +--cells=cell selects 7 namespaces$/m);
    expect(text.stdout).toMatch(new RegExp(`^FAIL +cells +${plugin.namespace}: Secret `, 'm'));
    expect((await run('--cells=nothing')).code).toBe(0);
    expect((await run('--cells=nothing')).stdout).toMatch(/^WARN +cells +--cells=nothing selects no namespace$/m);
  },
  TEST_MS,
);
