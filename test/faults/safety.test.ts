import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { FREEZE_LABEL, UNFREEZE_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { Event, Node } from '../../pkg/apis/wire.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 90_000 };
const MACHINE_NAME = 'node.gardener.cloud/machine-name';
const NOT_MANAGED = 'node.machine.sapcloud.io/not-managed-by-mcm';
const FINALIZER = 'node.machine.sapcloud.io/machine-controller';
const TEST_MS = 200_000;
/** The loops look often, and trust what they see at once. */
const EAGER = {
  'machine-safety-overshooting-period': '1s',
  'machine-safety-orphan-vms-period': '1s',
  'machine-safety-orphan-vms-grace': '1s',
  'machine-safety-grace': '0s',
};

let site: Site;

beforeAll(async () => {
  site = await Site.open();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

async function eventsOf(pool: Pool, reason: string): Promise<readonly Event[]> {
  const { body } = await site.api.request(`/api/v1/namespaces/${pool.namespace}/events`);
  return (body as { items: Event[] }).items.filter((event) => event.reason === reason);
}

async function setsOf(pool: Pool): Promise<readonly MachineSet[]> {
  const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machinesets`;
  return ((await site.api.request(path)).body as { items: MachineSet[] }).items;
}

/** What set and deployment show of a freeze. */
async function marksOf(pool: Pool): Promise<unknown[]> {
  const deployment = await pool.deployment();
  const [set] = await setsOf(pool);
  return [
    set?.metadata.labels?.[FREEZE_LABEL],
    set?.status?.machineSetCondition?.find(({ type }) => type === 'Frozen')?.reason,
    deployment.metadata.labels?.[FREEZE_LABEL],
    deployment.status?.conditions?.find(({ type }) => type === 'Frozen')?.reason,
  ];
}

const FROZEN = ['True', 'OverShootingReplicaCount', 'True', 'MachineDeploymentStateSync'];
const FREE = [undefined, undefined, undefined, undefined];

async function untilMarked(pool: Pool, marks: readonly unknown[]): Promise<void> {
  await eventually(async () => expect(await marksOf(pool)).toEqual(marks), { ...PATIENCE, describe: 'the marks' });
}

async function request(method: 'PATCH' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<void> {
  const contentType = 'application/merge-patch+json';
  const answer = await site.api.request(path, {
    method,
    ...(body === undefined ? {} : { body }),
    ...(method === 'PATCH' && { contentType }),
  });
  expect(answer.status).toBeLessThan(300);
}

/** VMs that nobody asked for, named as those of the pool's set. */
async function plant(cloud: SimulatedCloud, pool: Pool, count: number, joins = false): Promise<readonly string[]> {
  const [set] = await setsOf(pool);
  return Array.from({ length: count }, (_, i) => {
    const planted = {
      cluster: '',
      namespace: pool.namespace,
      className: 'pool',
      machineName: `${set?.metadata.name ?? ''}-lost${i}`,
      machineUID: undefined,
      zone: pool.namespace,
      size: 'small',
      power: 'on',
      initialized: true,
      joinsAtMs: joins ? 0 : undefined,
      nodeLabels: {},
    } as const;
    return cloud.simulation.cloud.create(planted).providerID;
  });
}

async function idsOf(cloud: SimulatedCloud): Promise<readonly string[]> {
  return (await cloud.vms()).map(({ providerID }) => providerID).toSorted();
}

describe('a set with too many machines', () => {
  test(
    'is frozen for a moment by a fast scale-down, with one Event each',
    async () => {
      await using cloud = await SimulatedCloud.start({ site, latencyMs: { ...QUICK, delete: 3_000 } });
      await using pool = await Pool.create({ site, cloud, replicas: 6 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      await pool.untilUp(6, PATIENCE);

      await pool.scale(2);
      await untilMarked(pool, FROZEN);
      await untilMarked(pool, FREE);
      await pool.untilUp(2, PATIENCE);

      await eventually(async () => {
        const told = [await eventsOf(pool, 'FrozeMachineSet'), await eventsOf(pool, 'UnfrozeMachineSet')];
        expect(told.map((events) => events.map(({ count }) => count))).toEqual([[1], [1]]);
      }, PATIENCE);
      expect(cloud.created).toHaveLength(6);
    },
    TEST_MS,
  );

  test(
    'is frozen when it adopts machines, not only when the next count is due',
    async () => {
      await using cloud = await SimulatedCloud.start({ site, latencyMs: { ...QUICK, delete: 600_000 } });
      await using pool = await Pool.create({ site, cloud, replicas: 2 });
      const flags = { ...EAGER, 'machine-safety-overshooting-period': '1h' };
      await using _manager = await InProcessManager.start({ ...pool.access, flags });
      await pool.untilUp(2, PATIENCE);
      const [set] = await setsOf(pool);

      const extra = await Promise.all(Array.from({ length: 5 }, () => pool.addMachine()));
      await Promise.all(extra.map((name) => pool.label(name, set?.spec.template?.metadata?.labels ?? {})));
      await untilMarked(pool, FROZEN);

      const [froze] = await eventually(async () => {
        const events = await eventsOf(pool, 'FrozeMachineSet');
        expect(events).toHaveLength(1);
        return events;
      }, PATIENCE);
      expect(froze?.message).toMatch(/: it has \d machines, the limit is \d; released at \d$/);
      const frozen = (await pool.deployment()).status?.conditions?.find(({ type }) => type === 'Frozen');
      expect(frozen?.message).toMatch(/ is frozen: The number of machines .* is \d >= \d .*; released at \d$/);
      expect(cloud.created).toHaveLength(7);
    },
    TEST_MS,
  );

  test(
    'also counts VMs that no Machine has, creates nothing while frozen, and is released by its annotation',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 2 });
      const flags = {
        ...EAGER,
        'machine-safety-overshooting-period': '5s',
        'machine-safety-orphan-vms-dry-run': 'true',
      };
      await using _manager = await InProcessManager.start({ ...pool.access, flags });
      await pool.untilUp(2, PATIENCE);

      const planted = await plant(cloud, pool, 4);
      await untilMarked(pool, FROZEN);
      await pool.scale(3);
      await eventually(async () => (await eventsOf(pool, 'OrphanVMFound')).length > 0, PATIENCE);
      expect((await pool.machines()).length).toBe(2);

      const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machinedeployments/pool`;
      await request('PATCH', path, { metadata: { annotations: { [UNFREEZE_ANNOTATION]: 'yes' } } });
      await eventually(async () => (await pool.machines()).length === 3, PATIENCE);
      expect((await pool.deployment()).metadata.annotations?.[UNFREEZE_ANNOTATION]).toBeUndefined();

      expect(await idsOf(cloud)).toEqual(expect.arrayContaining([...planted]));
      for (const providerID of planted) cloud.simulation.cloud.remove(providerID, 'vanished');
      await untilMarked(pool, FREE);
      await pool.untilUp(3, PATIENCE);
      expect(cloud.deleted).toBe(4);
    },
    TEST_MS,
  );
});

describe('a VM that no Machine has', () => {
  test(
    'is deleted with its Node after two looks, and told of with the proof; machines that work are left alone',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 3 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const names = await pool.untilUp(3, PATIENCE);

      const [planted = ''] = await plant(cloud, pool, 1, true);
      expect(await pool.untilUp(3, PATIENCE)).toEqual(names);

      expect(cloud.simulation.cloud.get(planted)).toBeUndefined();
      expect(cloud.calls['DeleteMachine']).toBe(1);
      await eventually(async () => {
        const [event] = await eventsOf(pool, 'OrphanVMDeleted');
        expect(event?.message).toMatch(
          /which no Machine has: seen at [\d:]+ among 4 VMs, before 3 Machines were read, .* s apart/,
        );
        expect(event?.message).toContain(planted);
      }, PATIENCE);
    },
    TEST_MS,
  );

  test(
    'is deleted too when somebody took away the finalizer of its Machine, which is replaced',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 2 });
      await using _manager = await InProcessManager.start({
        ...pool.access,
        flags: { ...EAGER, 'machine-safety-orphan-vms-period': '10m' },
      });
      const [stripped = '', kept = ''] = await pool.untilUp(2, PATIENCE);
      const { providerID: lost = '' } = cloud.created.find(({ machineName }) => machineName === stripped) ?? {};

      const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machines/${stripped}`;
      // The drain waits for no pod, so the object must be gone before the deletion gets to the VM.
      cloud.setFaults([{ method: 'DeleteMachine', effect: 'fail', machines: stripped, times: 1 }]);
      await request('DELETE', path);
      await request('PATCH', path, { metadata: { finalizers: null } });

      await eventually(() => cloud.simulation.cloud.get(lost) === undefined, PATIENCE);
      const names = await pool.untilUp(2, PATIENCE);
      expect(names).toContain(kept);
      expect(names).not.toContain(stripped);
      expect(cloud.created).toHaveLength(3);
    },
    TEST_MS,
  );
});

describe('a Machine that is let go by hand', () => {
  test(
    'while its VM is being deleted loses its Node with the VM, and nobody is asked twice',
    async () => {
      await using cloud = await SimulatedCloud.start({ site, latencyMs: { ...QUICK, delete: 4_000 } });
      await using pool = await Pool.create({ site, cloud, replicas: 1 });
      const flags = { ...EAGER, 'machine-safety-orphan-vms-period': '10m' };
      await using _manager = await InProcessManager.start({ ...pool.access, flags });
      const [stripped = ''] = await pool.untilUp(1, PATIENCE);

      const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machines/${stripped}`;
      await request('DELETE', path);
      await eventually(() => cloud.calls['DeleteMachine'] === 1, PATIENCE);
      await request('PATCH', path, { metadata: { finalizers: null } });

      const node = `/api/v1/nodes/${stripped}`;
      await eventually(async () => expect((await site.api.request(node)).status).toBe(404), PATIENCE);
      await pool.untilUp(1, PATIENCE);
      expect(cloud.calls['DeleteMachine']).toBe(1);
      expect(await eventsOf(pool, 'OrphanVMDeleted')).toEqual([]);
    },
    TEST_MS,
  );
});

describe('a Machine whose VM has vanished', () => {
  test(
    'fails and is replaced before any health timeout, and no other is',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 3 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const [victim = '', ...others] = await pool.untilUp(3, PATIENCE);
      const vm = cloud.created.find(({ machineName }) => machineName === victim);

      cloud.simulation.cloud.remove(vm?.providerID ?? '', 'vanished');
      await eventually(async () => (await eventsOf(pool, 'VMVanished')).length === 1, PATIENCE);
      const names = await pool.untilUp(3, PATIENCE);

      expect(names).toEqual(expect.arrayContaining(others));
      expect(names).not.toContain(victim);
      expect(cloud.created).toHaveLength(4);
    },
    TEST_MS,
  );

  test(
    'is kept while its Node works: a provider that forgets its VMs costs none',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 2 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const names = await pool.untilUp(2, PATIENCE);
      const before = cloud.calls['GetMachineStatus'] ?? 0;

      cloud.setFaults([
        { method: 'ListMachines', effect: 'stale', delayMs: 3_000_000 },
        { method: 'GetMachineStatus', effect: 'fail', code: 'NotFound' },
      ]);
      // Each look asks for both machines.
      await eventually(() => (cloud.calls['GetMachineStatus'] ?? 0) >= before + 8, PATIENCE);
      cloud.setFaults([]);

      expect(await pool.untilUp(2, PATIENCE)).toEqual(names);
      expect(cloud.created).toHaveLength(2);
    },
    TEST_MS,
  );
});

describe('a Node that no Machine has', () => {
  test(
    'is deleted when it says that it is of a machine whose VM was deleted, although its kubelet knows nothing of that VM',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 2 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const [kept = ''] = await pool.untilUp(2, PATIENCE);
      const gone = (await pool.machines()).map(({ metadata }) => metadata.name).find((name) => name !== kept) ?? '';
      await pool.deleteMachine(gone);
      await eventually(() => cloud.removed.length === 1, PATIENCE);
      await pool.untilUp(2, PATIENCE);

      const register = (name: string, of: string): Promise<unknown> =>
        request('POST', '/api/v1/nodes', {
          metadata: { name, labels: { [MACHINE_NAME]: of }, finalizers: [FINALIZER] },
          spec: { providerID: `kubemark://${name}` },
        });
      const late = `late-${pool.namespace}`;
      const stranger = `stranger-${pool.namespace}`;
      await register(stranger, 'nobody');
      await register(late, gone);

      const isThere = async (name: string): Promise<boolean> =>
        (await site.api.request(`/api/v1/nodes/${name}`)).status === 200;
      await eventually(async () => !(await isThere(late)), { ...PATIENCE, describe: 'the Node that came late to go' });
      expect(await isThere(stranger)).toBe(true);
    },
    TEST_MS,
  );

  test(
    'is marked and let go when it is old enough, and unmarked when a Machine has it',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 0 });
      const flags = { ...EAGER, 'machine-creation-timeout': '2s', 'machine-safety-orphan-vms-period': '10m' };
      await using _manager = await InProcessManager.start({ ...pool.access, flags });
      const name = `stray-${pool.namespace}`;
      const providerID = `sim:///elsewhere/${name}`;
      await request('POST', '/api/v1/nodes', { metadata: { name, finalizers: [FINALIZER] }, spec: { providerID } });

      const look = async (): Promise<Node> => (await site.api.request(`/api/v1/nodes/${name}`)).body as Node;
      await eventually(async () => {
        const { metadata } = await look();
        expect([metadata.annotations?.[NOT_MANAGED], metadata.finalizers]).toEqual(['1', undefined]);
      }, PATIENCE);

      const machines = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machines`;
      await request('POST', machines, {
        apiVersion: 'machine.sapcloud.io/v1alpha1',
        kind: 'Machine',
        metadata: { name },
        spec: { class: { kind: 'MachineClass', name: 'pool' }, providerID },
      });
      await eventually(
        async () => expect((await look()).metadata.annotations?.[NOT_MANAGED]).toBeUndefined(),
        PATIENCE,
      );
    },
    TEST_MS,
  );
});
