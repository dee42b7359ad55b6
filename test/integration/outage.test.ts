import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { MAINTENANCE_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { Workload } from '../cloud/workload.ts';
import { Program } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';

const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
const TEST_MS = 480_000;
/**
 * Outages are short here, and leadership survives that of the control cluster. A probe may take a third of the timeout: on a busy host less
 * than this would be an outage too.
 */
const FLAGS = {
  'machine-safety-apiserver-statuscheck-timeout': '9s',
  'machine-safety-apiserver-statuscheck-period': '9s',
  'leader-elect': 'true',
  'leader-elect-lease-duration': '240s',
  'leader-elect-renew-deadline': '200s',
  'leader-elect-retry-period': '1s',
};

let site: Site;
let control: FaultProxy;
let target: FaultProxy;
let cloud: SimulatedCloud;
let pool: Pool;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

beforeEach(async () => {
  control = await FaultProxy.start(site.plane.connection.url);
  target = await FaultProxy.start(site.plane.connection.url);
  cloud = await SimulatedCloud.start({ site });
  pool = await Pool.create({ site, cloud, replicas: 2 });
});

afterEach(async () => {
  await pool[Symbol.asyncDispose]();
  await cloud[Symbol.asyncDispose]();
  await target[Symbol.asyncDispose]();
  await control[Symbol.asyncDispose]();
});

/** A manager that reaches its two clusters, which are one, through a proxy each. */
async function startManager(flags: Readonly<Record<string, string>> = {}): Promise<InProcessManager> {
  return await InProcessManager.start({
    ...pool.access,
    flags: {
      ...FLAGS,
      'control-kubeconfig': await site.kubeconfigThrough(control.url),
      'target-kubeconfig': await site.kubeconfigThrough(target.url),
      ...flags,
    },
  });
}

async function untilOutage(manager: InProcessManager, cluster: string, isOngoing: boolean): Promise<void> {
  let readiness = '';
  const look = async (): Promise<boolean> => {
    if ((await manager.metric('machinist_cluster_outage', `cluster="${cluster}"`)) === (isOngoing ? 1 : 0)) return true;
    readiness = await (await fetch(`${manager.url}/readyz?verbose`)).text();
    return false;
  };
  const found = (): string => `${cluster} to ${isOngoing ? 'have an outage' : 'be alive'}; it says:\n${readiness}`;
  await eventually(look, { ...PATIENCE, describe: found });
}

async function conditionOf(type: string): Promise<string | undefined> {
  const { status } = await pool.deployment();
  const condition = status?.conditions?.find((one) => one.type === type);
  return condition?.status === 'True' ? condition.message : undefined;
}

/** Waits for an Event on a Lease of this pool's manager whose reason and message are like this. */
async function untilTold(lease: string, told: RegExp): Promise<void> {
  const path = `/api/v1/namespaces/${pool.namespace}/events?fieldSelector=involvedObject.kind=Lease`;
  await eventually(async () => {
    const { body } = await site.api.request(path);
    const { items } = body as { items: { involvedObject: { name: string }; reason: string; message: string }[] };
    const events = items.filter(({ involvedObject }) => involvedObject.name === lease);
    expect(events.map(({ reason, message }) => `${reason} ${message}`)).toContainEqual(expect.stringMatching(told));
  }, PATIENCE);
}

/** Waits until the last operation of a machine reads like this. */
async function untilSaid(machine: string, said: RegExp): Promise<void> {
  await eventually(async () => {
    const found = (await pool.machines()).find(({ metadata }) => metadata.name === machine);
    expect(found?.status?.lastOperation?.description).toMatch(said);
  }, PATIENCE);
}

async function labelForced(machine: string): Promise<void> {
  const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machines/${machine}`;
  const body = { metadata: { labels: { 'force-deletion': 'True' } } };
  const { status } = await site.api.request(path, {
    method: 'PATCH',
    contentType: 'application/merge-patch+json',
    body,
  });
  expect(status).toBe(200);
}

async function hasVM(machine: string): Promise<boolean> {
  return (await cloud.vms()).some(({ machineName }) => machineName === machine);
}

/** Waits until a machine is gone with its VM. */
async function untilDeleted(machine: string): Promise<void> {
  await eventually(
    async () => !(await hasVM(machine)) && !(await pool.machines()).some(({ metadata }) => metadata.name === machine),
    { ...PATIENCE, describe: `${machine} to be gone` },
  );
}

/** Waits until these many machines run, none of them one of `gone`. */
async function untilReplaced(replicas: number, ...gone: readonly string[]): Promise<void> {
  await eventually(
    async () => {
      const all = await pool.machines();
      expect(all.map(({ status }) => status?.currentStatus?.phase)).toEqual(
        Array.from({ length: replicas }, () => 'Running'),
      );
      expect(all.filter(({ metadata }) => gone.includes(metadata.name))).toEqual([]);
      expect(await cloud.vms()).toHaveLength(replicas);
    },
    { ...PATIENCE, describe: 'the machines to be replaced' },
  );
}

/** Whether a machine waits with its VM while the rest of the world goes on. */
async function expectHeld(machine: string): Promise<void> {
  expect(await hasVM(machine)).toBe(true);
  expect((await pool.machines()).map(({ metadata }) => metadata.name)).toContain(machine);
}

describe('while the target cluster cannot be reached', () => {
  test(
    'nothing but a forced deletion goes on, everybody is told, and afterwards everything goes on by itself',
    async () => {
      await using manager = await startManager();
      const [plain = '', forced = ''] = await pool.untilUp(2);

      target.set('refuse');
      await untilOutage(manager, 'target', true);
      await labelForced(forced);
      await pool.deleteMachine(plain);
      await pool.deleteMachine(forced);
      await untilDeleted(forced);
      const message = await eventually(async () => (await conditionOf('APIServerUnreachable')) ?? false, PATIENCE);
      const readiness = await (await fetch(`${manager.url}/readyz?verbose`)).text();
      for (const lease of ['machine-controller', 'machine-controller-manager']) {
        await untilTold(
          lease,
          /^APIServerUnreachable API server of cluster "target" unreachable since .*: no object or VM/,
        );
      }
      await expectHeld(plain);
      await untilSaid(plain, /^API server of cluster "target" unreachable since .* until it responds again\./);
      const access = ['-n', pool.namespace, '--kubeconfig', site.plane.connection.kubeconfig];
      const described = await Program.run('machinist', ['describe', 'machine', plain, ...access]);
      expect(described.stdout).toMatch(/\nReason: +APIServerUnreachable\nMessage: +API server of cluster "target"/);
      expect(described.stdout).toMatch(/\nNext: +Nothing until then/);
      const { metadata } = await pool.deployment();

      expect(message).toMatch(
        // On a busy host the time of a probe may be over before it is refused.
        /^API server of cluster "target" unreachable since \d{4}-\S+Z \(.*(?:ECONN|took longer than).*\): no object or VM/,
      );
      expect(readiness).toMatch(/; target: outage, API server of cluster "target" unreachable since/);
      expect(cloud.created).toHaveLength(2); // those that replace the two wait
      expect(await conditionOf('Frozen')).toBeUndefined();
      expect(metadata.labels?.['freeze']).toBeUndefined();

      target.set('up');
      await untilOutage(manager, 'target', false);
      await untilReplaced(2, plain, forced);
      await eventually(async () => (await conditionOf('APIServerUnreachable')) === undefined, PATIENCE);
      await untilTold(
        'machine-controller',
        /^APIServerReachable .* after .* s; API server of cluster "target" unreachable/,
      );
      expect(cloud.created).toHaveLength(4);
      expect([...cloud.doubled]).toEqual([]);
    },
    TEST_MS,
  );

  // promise: maintenance/nothing-cordoned-drained-given
  test(
    'no Node is cordoned, drained or given back for maintenance, until it answers again',
    async () => {
      await using manager = await startManager();
      const [ending = '', starting = ''] = await pool.untilUp(2);
      const isCordoned = async (name: string): Promise<boolean> => {
        const { body } = await site.api.request(`/api/v1/nodes/${name}`);
        return (body as Node).spec?.unschedulable === true;
      };
      const untilSays = (name: string, wanted: string): Promise<unknown> =>
        eventually(async () => {
          const { machineConditions = [] } = (await pool.machine(name)).status ?? {};
          expect(machineConditions.find(({ type }) => type === 'Maintenance')?.reason).toBe(wanted);
        }, PATIENCE);
      await pool.annotate(ending, { [MAINTENANCE_ANNOTATION]: 'true' });
      await untilSays(ending, 'InMaintenance');

      target.set('refuse');
      await untilOutage(manager, 'target', true);
      await pool.annotate(ending, { [MAINTENANCE_ANNOTATION]: null });
      await pool.annotate(starting, { [MAINTENANCE_ANNOTATION]: 'true' });
      await untilSays(starting, 'Requested');
      await untilSays(ending, 'NotInMaintenance');
      const during = [await isCordoned(ending), await isCordoned(starting)];

      target.set('up');
      await untilOutage(manager, 'target', false);
      await untilSays(starting, 'InMaintenance');
      await eventually(async () => !(await isCordoned(ending)), PATIENCE);
      expect(during).toEqual([true, false]);
      expect(await isCordoned(starting)).toBe(true);
      expect(cloud.created).toHaveLength(2);
    },
    TEST_MS,
  );

  test(
    'the outage of a process that starts lasts until the target answers, and still deletes what is deleted by force',
    async () => {
      await using first = await startManager({ 'leader-elect': 'false' });
      const [plain = '', forced = ''] = await pool.untilUp(2);
      await first.terminate();
      target.set('refuse');

      await using second = await startManager({ 'leader-elect': 'false' });
      await untilOutage(second, 'target', true);
      await pool.deleteMachine(plain);
      await labelForced(forced);
      await pool.deleteMachine(forced);
      await untilDeleted(forced);
      await expectHeld(plain);
      expect(cloud.created).toHaveLength(2);

      target.set('up');
      await untilReplaced(2, plain, forced);
      await untilOutage(second, 'target', false);
      expect(cloud.created).toHaveLength(4);
    },
    TEST_MS,
  );
});

describe('while the control cluster cannot be reached', () => {
  test(
    'a process that starts is alive and not ready, and says that it has reached nothing',
    async () => {
      control.set('stall');
      // The first probe ends after ten seconds: it is seen while it is under way.
      await using manager = await startManager({
        'machine-safety-apiserver-statuscheck-timeout': '60s',
        'machine-safety-apiserver-statuscheck-period': '60s',
      });
      const ask = async (path: string): Promise<{ status: number; text: string }> => {
        const answer = await fetch(`${manager.url}${path}`);
        return { status: answer.status, text: await answer.text() };
      };
      const { status: alive } = await eventually(() => ask('/healthz'), PATIENCE);
      const before = await eventually(async () => {
        const readiness = await ask('/readyz?verbose');
        expect(readiness.text).toContain('[+] clusters ok: control: ');
        return readiness;
      }, PATIENCE);

      control.set('up');
      const after = await eventually(async () => {
        const readiness = await ask('/readyz?verbose');
        expect(readiness.status).toBe(200);
        return readiness;
      }, PATIENCE);

      expect(alive).toBe(200);
      expect(before.status).toBe(503);
      expect(before.text).toMatch(/^\[-\] caches failed: not synced: .*Machine/m);
      expect(before.text).toContain('control: not reached yet');
      expect(after.text).toContain('control: reachable');
    },
    TEST_MS,
  );

  // promise: maintenance/maintenance-control-cluster-leaves
  test(
    'nothing is deleted, a Node on its way into maintenance stays cordoned, and its end is told with how long it lasted',
    async () => {
      await using manager = await startManager();
      const [plain = '', maintained = ''] = await pool.untilUp(2);
      const workload = await Workload.open(site.api, pool.namespace);
      const { metadata: pod } = await workload.pod(maintained);
      await workload.forbidEvictions(1);
      await pool.annotate(maintained, { [MAINTENANCE_ANNOTATION]: 'true' });
      const shown = async (): Promise<unknown> => {
        const { spec, status } = await workload.node(maintained);
        const { reason } = status?.conditions?.find(({ type }) => type === 'Maintenance') ?? {};
        return { isCordoned: spec?.unschedulable === true, reason };
      };
      await eventually(
        async () => expect(await shown()).toEqual({ isCordoned: true, reason: 'DrainBlocked' }),
        PATIENCE,
      );

      control.set('stall');
      await untilOutage(manager, 'control', true);
      await pool.annotate(maintained, { [MAINTENANCE_ANNOTATION]: null });
      await pool.deleteMachine(plain);
      const { DeleteMachine = 0, CreateMachine = 0 } = cloud.calls;
      const probes = (): Promise<number> =>
        manager.metric('machinist_cluster_probes_total', 'cluster="control",result="down"');
      const before = await probes();
      await eventually(async () => (await probes()) >= before + 3, PATIENCE);
      expect(cloud.calls).toMatchObject({ CreateMachine, ...(DeleteMachine === 0 ? {} : { DeleteMachine }) });
      await expectHeld(plain);
      // That maintenance is not wanted any more nobody can know.
      expect(await shown()).toMatchObject({ isCordoned: true, reason: 'DrainBlocked' });

      control.set('up');
      await untilOutage(manager, 'control', false);
      await eventually(
        async () => expect(await shown()).toEqual({ isCordoned: false, reason: 'NotInMaintenance' }),
        PATIENCE,
      );
      expect((await workload.pods()).map(({ metadata }) => metadata.uid)).toEqual([pod.uid]);
      await untilReplaced(2, plain);
      await untilTold(
        'machine-controller',
        /^APIServerReachable .* after .* s; API server of cluster "control" unreachable/,
      );
      expect(await conditionOf('APIServerUnreachable')).toBeUndefined();
      expect(cloud.created).toHaveLength(3);
    },
    TEST_MS,
  );
});
