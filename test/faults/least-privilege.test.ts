import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import { parseManifests } from '../../hack/control-plane/apply.ts';
import { Audit } from '../cloud/audit.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { Workload } from '../cloud/workload.ts';
import { eventually } from '../expect/eventually.ts';

/*
 * What the shipped roles grant, against what the API server's audit log says was asked for in a life with a rollout, drains with volumes
 * and budgets, a forced deletion, a vanished Node and a second replica.
 */
const RBAC = join(import.meta.dirname, '../../deploy/rbac');
const FILES = ['control', 'control-identity', 'target'];
const PATIENCE = { timeoutMs: 120_000, intervalMs: 200 };
const FLAGS = { 'leader-elect': 'true' };

/** What this life needs only by chance, and what needs it. */
const SELDOM: Readonly<Record<string, string>> = {
  'get pods': 'an eviction that conflicts with another writer (pkg/drain/pod-actions.ts)',
  'patch events': 'an Event that is repeated (pkg/events/recorder.ts)',
};

let audit: Audit;
let site: Site;

beforeAll(async () => {
  audit = new Audit('everything');
  site = await Site.open({ extraArguments: { 'kube-apiserver': audit.arguments } });
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
  audit[Symbol.dispose]();
});

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** `verb resource.group`, of every rule of the files. */
function granted(): readonly string[] {
  const manifests = FILES.flatMap((file) => parseManifests(readFileSync(join(RBAC, `${file}.yaml`), 'utf8')));
  const rules = manifests.flatMap(({ rules: some = [] }) => some as readonly Rule[]);
  const all = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => named(verb, resource, group)))),
  );
  return [...new Set(all)].toSorted();
}

function named(verb: string, resource: string, group: string): string {
  return `${verb} ${resource}${group === '' ? '' : `.${group}`}`;
}

test('nothing that a manager asks for is refused, and every verb that its roles grant is used', async () => {
  await using cloud = await SimulatedCloud.start({ site });
  await using pool = await Pool.create({ site, cloud, replicas: 2 });
  const workload = await Workload.open(site.api, pool.namespace);
  await using _first = await InProcessManager.start({ ...pool.access, flags: FLAGS });
  await using _second = await InProcessManager.start({ ...pool.access, flags: FLAGS });
  const [drained = '', vanished = ''] = await pool.untilUp(2);

  const volume = await workload.volume(drained);
  await workload.pod(drained, volume);
  await workload.pod(drained);
  await workload.forbidEvictions(2);
  await pool.deleteMachine(drained);
  await eventually(async () => {
    expect((await pool.machine(drained)).status?.lastOperation?.description).toContain('PodDisruptionBudget closed');
  }, PATIENCE);
  await pool.label(drained, { 'force-deletion': 'true' });
  await eventually(async () => expect(await workload.attachments(drained)).toEqual([]), PATIENCE);
  await site.api.send('DELETE', `/api/v1/nodes/${vanished}`);
  await eventually(async () => {
    const names = (await pool.machines()).map(({ metadata }) => metadata.name);
    expect(names).not.toContain(drained);
    expect(names).not.toContain(vanished);
  }, PATIENCE);
  await pool.untilUp(2);
  await pool.roll('2');
  await pool.untilUp(2);
  await pool.delete();
  await pool.untilGone(PATIENCE);

  const ours = audit.requests().filter(({ user }) => user === 'machinist');
  expect(ours.filter(({ code }) => code === 401 || code === 403)).toEqual([]);
  const used = new Set(ours.map(({ verb, resource, group }) => named(verb, resource, group)));
  expect(granted().filter((one) => !used.has(one) && !(one in SELDOM))).toEqual([]);
  expect([...used].filter((one) => !granted().includes(one) && !one.endsWith('.authorization.k8s.io'))).toEqual([]);
}, 300_000);
