import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { WorkInProgress } from '../../pkg/health/work-in-progress.ts';
import { CellsManager } from '../cloud/cells-manager.ts';
import { TestCell } from '../cloud/cell.ts';
import { Site } from '../cloud/site.ts';
import { Program } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { grant } from './shipped-roles.ts';

const LEASES = 'machinist';
const TEST_MS = 300_000;
const PATIENCE = { timeoutMs: 60_000, intervalMs: 100 };

let control: Site;

beforeAll(async () => {
  control = await Site.drawn();
  await control.api.send('POST', '/api/v1/namespaces', { metadata: { name: LEASES } });
  await grant(control.api, 'cells', LEASES);
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
    namespace: LEASES,
    drivers,
    flags: { 'leader-elect': 'true' },
  });
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

    const described = await Program.run('machinist', [
      'describe',
      `machine/${name}`,
      `--kubeconfig=${control.kubeconfig}`,
      '-n',
      namespace,
      '--url',
      manager.url,
    ]);

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
    expect(described.stdout).toMatch(/^Next Attempt: +.*; create, attempt /m);
  },
  TEST_MS,
);
