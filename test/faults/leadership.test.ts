import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Event, Lease } from '../../pkg/apis/wire.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Driver, DriverCall } from '../../pkg/driver/driver.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { GrpcDriver } from '../../pkg/driver/grpc/client.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { Backup } from '../cloud/backup.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { ManagerProcess } from '../cloud/manager-process.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { identitiesOf } from '../cloud/trial.ts';
import { callOf, classOf } from '../drivers/requests.ts';
import { eventually } from '../expect/eventually.ts';

/* What stands between a manager and its Leases, and between two managers with a driver each. MACHINIST_FAULTS=long: 100 machines. */
const MACHINES = process.env['MACHINIST_FAULTS'] === 'long' ? 100 : 3;
const PATIENCE = { timeoutMs: 240_000, intervalMs: 100 };
const TEST_MS = 900_000;
/** Waited for, but not lost because the host is busy for a while. */
const SHORT_LEASE = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '15s',
  'leader-elect-renew-deadline': '10s',
  'leader-elect-retry-period': '500ms',
};
const LONG_LEASE = {
  'leader-elect': 'true',
  'leader-elect-lease-duration': '60s',
  'leader-elect-renew-deadline': '50s',
};
const QUICK_LOOKS = { 'machine-safety-orphan-vms-period': '2s', 'machine-safety-orphan-vms-grace': '2s' };

let site: Site<ControlPlane>;

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

/** A driver that stands still in these calls, with all that it was asked for, until it is told to go on. */
function standingStill(driver: Driver, calls: readonly ('createMachine' | 'deleteMachine')[], isStill = true) {
  const resumed = Promise.withResolvers<void>();
  const state = { isStill, held: 0, done: 0 };
  const wrapped: Driver = new Proxy(driver, {
    get(target, property) {
      const member = Reflect.get(target, property, target) as unknown;
      if (typeof member !== 'function') return member;
      if (!calls.some((call) => call === property)) return member.bind(target) as unknown;
      return async (request: unknown, call: DriverCall) => {
        const send = member.bind(target) as (request: unknown, call: DriverCall) => Promise<unknown>;
        if (!state.isStill) return await send(request, call);
        state.held += 1;
        await resumed.promise;
        // Paused together with its manager it has heard of no deadline either.
        const answer = await send(request, { ...call, signal: new AbortController().signal });
        state.done += 1;
        return answer;
      };
    },
  });
  const hold = (): void => void (state.isStill = true);
  const resume = (): void => {
    state.isStill = false;
    resumed.resolve();
  };
  return { wrapped, state, hold, resume };
}

test(
  'a lone manager survives an API server that is gone for longer than its renew deadline, and what providers were asked for before is done once',
  async () => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
    let still: ReturnType<typeof standingStill> | undefined;
    const driver = await cloud.serveAnother(
      (one) => (still = standingStill(one, ['createMachine', 'deleteMachine'], false)).wrapped,
    );
    await using manager = await ManagerProcess.start({ ...pool.access, driver, flags: SHORT_LEASE });
    await pool.untilUp(MACHINES, PATIENCE);
    const before = identitiesOf(await pool.machines());
    const [deleted = ''] = before.keys();
    const said = (message: string): number => manager.output.split(`"${message}"`).length - 1;

    still?.hold();
    await pool.deleteMachine(deleted);
    await pool.scale(MACHINES + 1);
    await eventually(() => still?.state.held === 3, { ...PATIENCE, describe: 'two creations and a deletion' });
    await site.plane.apiserver.stop('SIGKILL');
    await eventually(() => said('suspended leadership') === 2, {
      ...PATIENCE,
      describe: 'both Leases to be suspended',
    });
    still?.resume();
    await eventually(() => still?.state.done === 3, { ...PATIENCE, describe: 'the late answers' });
    await site.plane.apiserver.start();
    const backMs = performance.now();
    await pool.scale(MACHINES + 2);
    await eventually(() => cloud.created.length === MACHINES + 3, { ...PATIENCE, describe: 'another VM' });
    const seconds = (performance.now() - backMs) / 1_000;
    await pool.untilUp(MACHINES + 2, PATIENCE);
    const after = identitiesOf(await pool.machines());

    process.stdout.write(`the only manager asked for a VM ${seconds.toFixed(1)} s after the API server was back\n`);
    expect({ hasEnded: manager.hasEnded, resumed: said('resumed leadership') }).toEqual({
      hasEnded: false,
      resumed: 2,
    });
    expect([...before].filter(([name, identity]) => after.get(name) !== identity).map(([name]) => name)).toEqual([
      deleted,
    ]);
    expect({ created: cloud.created.length, deleted: cloud.deleted }).toEqual({ created: MACHINES + 3, deleted: 1 });
    expect(said('driver call failed, retrying')).toBe(0);
    expect((await machineLease(pool)).spec?.leaseTransitions).toBe(2);
  },
  TEST_MS,
);

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
    const beside = await cloud.serveAnother((driver) => (still = standingStill(driver, ['createMachine'])).wrapped);
    await using former = await ManagerProcess.start({ ...pool.access, driver: beside, flags: SHORT_LEASE });
    await eventually(() => still?.state.held === MACHINES, { ...PATIENCE, describe: 'all creations to be asked for' });

    await former.pause();
    await using next = await ManagerProcess.start({ ...pool.access, flags: { ...LONG_LEASE, ...QUICK_LOOKS } });
    await pool.untilUp(MACHINES, PATIENCE);
    const before = identitiesOf(await pool.machines());
    still?.resume();
    await eventually(() => still?.state.done === MACHINES, { ...PATIENCE, describe: 'the late creations' });
    former.resume();
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

/** Changes of leader that the backup does not know. */
const LEADERS_SINCE = 2;
/** The driver would forget the token of the last of them after an hour. */
const ACTS_WITHIN = { timeoutMs: 120_000, intervalMs: 50 };

/** The Lease under which drivers are called. */
async function machineLease({ namespace }: Pool): Promise<Lease> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/machine-controller`;
  return (await site.api.request(path)).body as Lease;
}

async function untilLed(pool: Pool, manager: InProcessManager): Promise<void> {
  const isLed = async (): Promise<boolean> => (await pool.leaders()).every((one) => one === manager.identity);
  await eventually(isLed, { ...PATIENCE, describe: 'the manager to lead' });
}

/** Deletes a VM as a leader would that was paused in the middle of the call. */
async function deleteLate(pool: Pool, providerID: string, fencingToken: bigint): Promise<unknown> {
  const address = parseDriverAddress(pool.access.driver);
  const client = new GrpcDriver({ address, clock: new SystemClock(), log: silentLogger });
  const { body } = await site.api.request('/api/v1/namespaces/kube-system');
  const cluster = (body as KubeObject).metadata.uid;
  const machine = { metadata: { name: 'late', namespace: pool.namespace }, spec: { providerID } };
  try {
    const request = { machine, machineClass: classOf('sim', { zone: pool.namespace }), secretData: {} };
    return await client.deleteMachine(request, callOf({ cluster, fencingToken }));
  } catch (err) {
    return err;
  } finally {
    await client.close();
  }
}

test.each(['is restored from a backup', 'was deleted by hand'] as const)(
  'the only manager is obeyed at once although its Lease counts less than drivers have seen, because it %s',
  async (what) => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
    const flags = { ...SHORT_LEASE, ...QUICK_LOOKS };
    const start = (): Promise<InProcessManager> => InProcessManager.start({ ...pool.access, flags });
    let known: ReadonlyMap<string, string>;
    await using stack = new AsyncDisposableStack();
    const restored = what === 'is restored from a backup';
    let backup: Backup | undefined;
    {
      await using first = await start();
      await pool.untilUp(MACHINES, PATIENCE);
      known = identitiesOf(await pool.machines());
      if (restored) backup = stack.use(await Backup.take(site.plane));
      await first.terminate();
    }
    for (let i = 1; i <= LEADERS_SINCE; i++) {
      await using next = await start();
      await pool.scale(MACHINES + i);
      await pool.untilUp(MACHINES + i, PATIENCE);
      await next.terminate();
    }
    const seen = BigInt((await machineLease(pool)).spec?.leaseTransitions ?? 0);
    const forgotten = restored ? LEADERS_SINCE : 0;

    if (backup === undefined) {
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${pool.namespace}/leases`;
      await site.api.request(leases, { method: 'DELETE' });
    } else await backup.restore();
    await using manager = await start();
    await untilLed(pool, manager);
    const ledMs = performance.now();
    const replicas = MACHINES + LEADERS_SINCE - forgotten + 1;
    const made = cloud.created.length;
    await pool.scale(replicas);
    await eventually(() => cloud.created.length > made, { ...ACTS_WITHIN, describe: 'the manager to be obeyed' });
    const seconds = (performance.now() - ledMs) / 1_000;
    await pool.untilUp(replicas, PATIENCE);
    const after = identitiesOf(await pool.machines());
    const late = await deleteLate(pool, [...after.values()][0]?.split(' ')[1] ?? '', seen);
    const transitions = BigInt((await machineLease(pool)).spec?.leaseTransitions ?? 0);

    process.stdout.write(
      `the Lease ${what}: obeyed ${seconds.toFixed(1)} s after it led, ${cloud.created.length} VMs made, ${cloud.deleted} deleted\n`,
    );
    expect([...known].filter(([name, identity]) => after.get(name) !== identity)).toEqual([]);
    expect(late).toMatchObject({ code: 'FailedPrecondition' });
    expect({ created: cloud.created.length, deleted: cloud.deleted }).toEqual({
      created: MACHINES + LEADERS_SINCE + 1,
      deleted: forgotten,
    });
    expect(transitions).toBeGreaterThan(seen);
    const { body } = await site.api.request(`/api/v1/namespaces/${pool.namespace}/events`);
    const told = (body as { items: Event[] }).items.filter(({ message }) => message?.includes('raised'));
    expect(told.map(({ involvedObject }) => involvedObject.kind)).toEqual(['Lease']);
  },
  TEST_MS,
);

test(
  'who acts under a higher token without the Lease is not outbid: it is told, and what helps',
  async () => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
    const warned: unknown[] = [];
    const log = { ...silentLogger, warn: (fields: unknown, message: string) => void warned.push({ fields, message }) };
    const first = await InProcessManager.start({ ...pool.access, flags: SHORT_LEASE, log });
    const told =
      /it has seen token 50; it accepted this process before, .* stop the other manager .*, then restart this one/;
    let held: string;
    let detail: string | undefined;
    {
      await using manager = first;
      await pool.untilUp(MACHINES, PATIENCE);
      // As the leader of a copy of this cluster would.
      await deleteLate(pool, `sim:///${pool.namespace}/none`, 50n);
      await pool.scale(MACHINES + 1);
      await eventually(async () => expect(await readiness(manager)).toMatch(told), PATIENCE);
      held = await readiness(manager);
      detail = await eventually(async () => {
        const machines = await pool.machines();
        const description = machines
          .map(({ status }) => status?.lastOperation?.description ?? '')
          .find((text) => text.includes('older than 50'));
        if (description === undefined) throw new Error('no machine says why it has no VM');
        return description;
      }, PATIENCE);
      expect(await manager.metric('machinist_work_held', 'waits_for="obedience"')).toBe(1);
      await manager.terminate();
    }
    const madeMeanwhile = cloud.created.length - MACHINES;
    const transitions = (await machineLease(pool)).spec?.leaseTransitions;
    await using next = await InProcessManager.start({ ...pool.access, flags: SHORT_LEASE });
    await pool.untilUp(MACHINES + 1, PATIENCE);

    expect(held).toMatch(/\[!\] work degraded: machine-controller held since /);
    expect(detail).toMatch(/then restart this one/);
    expect(warned).toContainEqual(expect.objectContaining({ message: 'driver rejected the fencing token, retrying' }));
    expect({ madeMeanwhile, transitions }).toEqual({ madeMeanwhile: 0, transitions: 1 });
    expect((await machineLease(pool)).spec?.leaseTransitions).toBe(51);
    expect(await readiness(next)).not.toContain('held since');
    expect({ created: cloud.created.length, deleted: cloud.deleted }).toEqual({ created: MACHINES + 1, deleted: 0 });
  },
  TEST_MS,
);
