import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { Driver } from '../../pkg/driver/driver.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { ManagerProcess } from '../cloud/manager-process.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { identitiesOf } from '../cloud/trial.ts';
import { eventually } from '../expect/eventually.ts';

/* What stands between a manager and its Leases, and between two managers with a driver each. MACHINIST_FAULTS=long: 100 machines. */
const MACHINES = process.env['MACHINIST_FAULTS'] === 'long' ? 100 : 3;
const PATIENCE = { timeoutMs: 240_000, intervalMs: 100 };
const TEST_MS = 900_000;
const SHORT_LEASE = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '6s',
  'leader-elect-renew-deadline': '4s',
  'leader-elect-retry-period': '500ms',
};
const LONG_LEASE = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '60s',
  'leader-elect-renew-deadline': '50s',
};
const QUICK_LOOKS = { 'machine-safety-orphan-vms-period': '2s', 'machine-safety-orphan-vms-grace': '2s' };

let site: Site;

beforeAll(async () => {
  site = await Site.open();
}, TEST_MS);

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** Allows no Lease to be made in the namespace; resolves, when that has come into force, with what allows it again. */
async function forbidLeases(namespace: string): Promise<() => Promise<void>> {
  const { api } = site;
  const quotas = `/api/v1/namespaces/${namespace}/resourcequotas`;
  const hard = { 'count/leases.coordination.k8s.io': '0' };
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'no-leases' }, spec: { hard } };
  await api.request(quotas, { method: 'POST', body: quota });
  // As the controller manager would.
  const status = { status: { hard, used: hard } };
  const contentType = 'application/merge-patch+json';
  await api.request(`${quotas}/no-leases/status`, { method: 'PATCH', contentType, body: status });
  await eventually(
    async () => {
      const body = { metadata: { name: 'another' }, spec: {} };
      const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
      if ((await api.request(path, { method: 'POST', body })).status === 403) return true;
      await api.request(`${path}/another`, { method: 'DELETE' });
      return false;
    },
    { ...PATIENCE, describe: 'the quota' },
  );
  return async () => void (await api.request(`${quotas}/no-leases`, { method: 'DELETE' }));
}

async function readiness({ url }: InProcessManager): Promise<string> {
  return (await fetch(`${url}/readyz?verbose`)).text();
}

/** Resolves when the process says why it does not lead. */
async function untilToldOfQuota(manager: InProcessManager): Promise<void> {
  const said = async (): Promise<void> => {
    expect((await readiness(manager)).match(/exceeded quota: no-leases/g)).toHaveLength(2);
  };
  await eventually(said, { ...PATIENCE, describe: 'both Leases to be missed for the quota' });
}

test(
  'while a quota refuses the Leases nothing is done and everything is told; afterwards the work goes on',
  async () => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
    let allow = await forbidLeases(pool.namespace);
    await using first = await InProcessManager.start({ ...pool.access, flags: SHORT_LEASE });

    await untilToldOfQuota(first);
    const madeWithoutLease = cloud.created.length;
    await allow();
    await pool.untilUp(MACHINES, PATIENCE);
    const before = identitiesOf(await pool.machines());

    // A leader whose Leases are deleted makes them again; where it must not, it ends, and the next one waits.
    allow = await forbidLeases(pool.namespace);
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${pool.namespace}/leases`;
    await site.api.request(leases, { method: 'DELETE' });
    const code = await first.ended;
    await using next = await InProcessManager.start({ ...pool.access, flags: SHORT_LEASE });
    await untilToldOfQuota(next);
    await pool.scale(MACHINES + 1);
    await sleep(1_000);
    const madeMeanwhile = cloud.created.length - MACHINES;
    await allow();
    await pool.untilUp(MACHINES + 1, PATIENCE);
    const after = identitiesOf(await pool.machines());

    expect({ madeWithoutLease, code, madeMeanwhile }).toEqual({ madeWithoutLease: 0, code: 1, madeMeanwhile: 0 });
    expect([...before].filter(([name, identity]) => after.get(name) !== identity)).toEqual([]);
    expect({ created: cloud.created.length, deleted: cloud.deleted }).toEqual({ created: MACHINES + 1, deleted: 0 });
  },
  TEST_MS,
);

/** A driver that stands still from its first creation on, with all that it was asked for, until it is told to go on. */
function standingStill(driver: Driver) {
  const resumed = Promise.withResolvers<void>();
  const held = { count: 0, made: 0 };
  const wrapped: Driver = new Proxy(driver, {
    get(target, property) {
      if (property !== 'createMachine') {
        const member = Reflect.get(target, property, target) as unknown;
        return typeof member === 'function' ? (member.bind(target) as unknown) : member;
      }
      return async (...[request, call]: Parameters<Driver['createMachine']>) => {
        held.count += 1;
        await resumed.promise;
        // Paused together with its manager it has heard of no deadline either.
        const created = await driver.createMachine(request, { ...call, signal: new AbortController().signal });
        held.made += 1;
        return created;
      };
    },
  });
  return { wrapped, held, resume: () => resumed.resolve() };
}

test(
  'a driver beside each replica knows nothing of the other: what a former leader had asked its own for is done late, and taken away',
  async () => {
    await using cloud = await SimulatedCloud.start({
      site,
      latencyMs: { ...QUICK, create: 50 },
      // What the provider is asked for twice it makes twice.
      faults: [{ method: 'CreateMachine', effect: 'duplicate' }],
    });
    await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
    let still: ReturnType<typeof standingStill> | undefined;
    const beside = await cloud.serveAnother((driver) => (still = standingStill(driver)).wrapped);
    await using former = await ManagerProcess.start({ ...pool.access, driver: beside, flags: SHORT_LEASE });
    await eventually(() => still?.held.count === MACHINES, { ...PATIENCE, describe: 'all creations to be asked for' });

    former.signal('SIGSTOP');
    await using next = await ManagerProcess.start({ ...pool.access, flags: { ...LONG_LEASE, ...QUICK_LOOKS } });
    await pool.untilUp(MACHINES, PATIENCE);
    const before = identitiesOf(await pool.machines());
    still?.resume();
    await eventually(() => still?.held.made === MACHINES, { ...PATIENCE, describe: 'the late creations' });
    former.signal('SIGCONT');
    await former.ended();
    await eventually(() => cloud.deleted === MACHINES, { ...PATIENCE, describe: 'second VMs to be taken away' });
    await pool.untilUp(MACHINES, PATIENCE);
    const after = identitiesOf(await pool.machines());

    expect(next.hasEnded).toBe(false);
    expect(after).toEqual(before);
    expect({ created: cloud.created.length, deleted: cloud.deleted }).toEqual({
      created: 2 * MACHINES,
      deleted: MACHINES,
    });
  },
  TEST_MS,
);
