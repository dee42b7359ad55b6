import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import {
  DELETE_ORPHAN_VMS_UNTIL_ANNOTATION,
  FREEZE_LABEL,
  UNFREEZE_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { Event, Node } from '../../pkg/apis/wire.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import type { FaultRule } from '../../packages/providers/sim/faults.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { silentLogger, type Logger } from '../../pkg/base/log/logger.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud, type SimCloudOptions } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { mutateOnCreation, relabelling } from '../env/mutating-policy.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 90_000 };
const MACHINE_NAME = 'node.gardener.cloud/machine-name';
const NOT_MANAGED = 'node.machine.sapcloud.io/not-managed-by-mcm';
const FINALIZER = 'node.machine.sapcloud.io/machine-controller';
const TEST_MS = 200_000;
/** Machines, or VMs, where it matters that they are many. */
const MACHINES = process.env['MACHINIST_FAULTS'] === 'long' ? 100 : 5;
/** The loops look often, and trust what they see at once. */
const EAGER = {
  'machine-safety-overshooting-period': '1s',
  'machine-safety-orphan-vms-period': '1s',
  'machine-safety-orphan-vms-grace': '1s',
  'machine-safety-grace': '0s',
};

/** A provider that shows nothing, as if none of its VMs existed. */
const BLIND: readonly FaultRule[] = [
  { method: 'ListMachines', effect: 'stale', delayMs: 3_000_000 },
  { method: 'GetMachineStatus', effect: 'fail', code: 'NotFound' },
];

let site: Site;

beforeAll(async () => {
  site = await Site.drawn();
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

const FROZEN = ['True', 'OverShootingReplicaCount', 'True', 'OverShootingReplicaCount'];
const FREE = [undefined, undefined, undefined, undefined];

async function untilMarked(pool: Pool, marks: readonly unknown[]): Promise<void> {
  await eventually(async () => expect(await marksOf(pool)).toEqual(marks), { ...PATIENCE, describe: 'the marks' });
}

/** VMs that nobody asked for, named as those of the pool's set. */
async function plant(cloud: SimulatedCloud, pool: Pool, count: number, joins = false): Promise<readonly string[]> {
  const [set] = await setsOf(pool);
  return Array.from({ length: count }, (_, i) => {
    const machineName = `${set?.metadata.name ?? ''}-lost${i}`;
    return cloud.simulation.cloud.plant({ ...pool.identity, machineName, join: joins }).providerID;
  });
}

async function idsOf(cloud: SimulatedCloud): Promise<readonly string[]> {
  return (await cloud.vms()).map(({ providerID }) => providerID).toSorted();
}

describe('a set with too many machines', () => {
  test(
    'is frozen for a moment by a fast scale-down, with one Event each',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 6 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      await pool.untilUp(6, PATIENCE);

      // The machines are there for as long as it takes to count them.
      cloud.setFaults([{ method: 'DeleteMachine', effect: 'fail' }]);
      await pool.scale(2);
      await untilMarked(pool, FROZEN);
      cloud.setFaults([]);
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
      expect(froze?.message).not.toMatch(/ \d/);
      const frozen = (await pool.deployment()).status?.conditions?.find(({ type }) => type === 'Frozen');
      expect(frozen?.message).toMatch(/^The number of machines .* is \d >= \d .*; released at \d$/);
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
      await site.api.send('PATCH', path, { metadata: { annotations: { [UNFREEZE_ANNOTATION]: 'yes' } } });
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

describe('a MachineDeployment whose machines are lost as they are made', () => {
  test(
    'has a bounded number of VMs, stays frozen until its annotation releases it, and then goes on',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 0 });
      const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machinedeployments/pool`;
      {
        await using _policy = await mutateOnCreation(site.plane, relabelling(pool.namespace, 'pool'));
        await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
        await pool.scale(2);
        await untilMarked(pool, [undefined, undefined, 'True', 'CreationLimitReached']);
      }
      // Another process counts anew, and does not go on all the same, however often it looks.
      const lost = (await pool.machines()).map(({ metadata }) => metadata.name);
      await using manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      await site.api.send('PATCH', path, { metadata: { labels: { [FREEZE_LABEL]: null } } });
      await untilMarked(pool, [undefined, undefined, 'True', 'CreationLimitReached']);
      expect((await pool.machines()).map(({ metadata }) => metadata.name)).toEqual(lost);
      expect(lost.length).toBeLessThanOrEqual(3 * 3 + 20 + 2);
      for (const name of lost) await pool.deleteMachine(name);
      await pool.untilEmpty(PATIENCE);

      await site.api.send('PATCH', path, { metadata: { annotations: { [UNFREEZE_ANNOTATION]: 'yes' } } });
      await pool.untilUp(2, PATIENCE);

      expect(await marksOf(pool)).toEqual(FREE);
      // Machines that were lost when their manager stopped may have got no VM.
      expect(cloud.created.length).toBeLessThanOrEqual(lost.length + 2);
      expect(cloud.created.length - cloud.deleted).toBe(2);
      await manager.terminate();
    },
    TEST_MS,
  );
});

describe('a VM that no Machine has (MCM 657, MCM 583, MCM 718)', () => {
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
          /which has no Machine: found at [\d:]+ among 4 VMs, before 3 Machines were read, .* s apart/,
        );
        expect(event?.message).toContain(planted);
      }, PATIENCE);
    },
    TEST_MS,
  );

  test(
    'is held, with too many others at once, until somebody says that all of them are to go',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 2 });
      await using manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const names = await pool.untilUp(2, PATIENCE);
      const held = (): Promise<number> => manager.metric('machinist_orphan_vms_held');
      const told = async (): Promise<number | undefined> => (await eventsOf(pool, 'OrphanVMsHeld'))[0]?.count;

      const planted = await plant(cloud, pool, MACHINES);
      await eventually(async () => expect((await told()) ?? 0).toBeGreaterThanOrEqual(2), PATIENCE);
      expect(await held()).toBe(MACHINES);
      await pool.annotateClass({ [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: 'yes' });
      await eventually(async () => {
        const messages = (await eventsOf(pool, 'OrphanVMsHeld')).map(({ message }) => message ?? '');
        expect(messages.filter((message) => message.includes('is not an RFC 3339 time'))).toHaveLength(1);
      }, PATIENCE);
      expect(await idsOf(cloud)).toEqual(expect.arrayContaining([...planted]));
      expect(cloud.calls['DeleteMachine'] ?? 0).toBe(0);

      await pool.annotateClass({ [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: toTimestamp(Date.now() + 3_600_000) });
      await eventually(async () => expect(await idsOf(cloud)).toHaveLength(2), PATIENCE);
      await eventually(async () => expect(await held()).toBe(0), PATIENCE);
      expect(await pool.untilUp(2, PATIENCE)).toEqual(names);
      expect([cloud.created.length, cloud.deleted]).toEqual([2 + MACHINES, MACHINES]);
    },
    TEST_MS,
  );

  test(
    'is deleted, however many there are, when its Machine was deleted before its creation had ended',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: MACHINES + 2 });
      await using manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const names = await pool.untilUp(MACHINES + 2, PATIENCE);
      await pool.scale(2);
      await eventually(() => cloud.deleted === MACHINES, PATIENCE);
      const kept = await pool.untilUp(2, PATIENCE);

      // What the provider made of requests that it had not answered.
      for (const machineName of names.filter((name) => !kept.includes(name)))
        cloud.simulation.cloud.plant({ ...pool.identity, machineName });
      await eventually(async () => expect(await idsOf(cloud)).toHaveLength(2), PATIENCE);

      expect(await eventsOf(pool, 'OrphanVMsHeld')).toEqual([]);
      expect(await manager.metric('machinist_orphan_vms_held')).toBe(0);
      expect(await pool.untilUp(2, PATIENCE)).toEqual(kept);
    },
    TEST_MS,
  );

  test(
    'is told of as held no more when its class is gone',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 0 });
      await using manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const held = (): Promise<number> => manager.metric('machinist_orphan_vms_held');
      await eventually(async () => (await setsOf(pool)).length === 1, PATIENCE);
      const planted = await plant(cloud, pool, MACHINES);
      await eventually(async () => expect(await held()).toBe(MACHINES), PATIENCE);

      // No Machine uses it, so that nothing keeps it.
      await site.api.send(
        'DELETE',
        `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machineclasses/pool`,
      );

      await eventually(async () => expect(await held()).toBe(0), PATIENCE);
      expect(await idsOf(cloud)).toEqual(planted.toSorted());
    },
    TEST_MS,
  );

  test(
    'is none that its driver lists under another id than its Machine has',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: MACHINES });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const names = await pool.untilUp(MACHINES, PATIENCE);

      cloud.setFaults([
        { method: 'ListMachines', effect: 'other-id' },
        { method: 'GetMachineStatus', effect: 'other-id' },
      ]);
      const before = cloud.calls['ListMachines'] ?? 0;
      await eventually(() => (cloud.calls['ListMachines'] ?? 0) >= before + 4, PATIENCE);
      await eventually(async () => (await eventsOf(pool, 'ProviderIDMismatch')).length === 1, PATIENCE);

      expect(await pool.untilUp(MACHINES, PATIENCE)).toEqual(names);
      expect([cloud.created.length, cloud.deleted]).toEqual([MACHINES, 0]);
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
      await site.api.send('DELETE', path);
      await site.api.send('PATCH', path, { metadata: { finalizers: null } });

      await eventually(() => cloud.simulation.cloud.get(lost) === undefined, PATIENCE);
      const names = await pool.untilUp(2, PATIENCE);
      expect(names).toContain(kept);
      expect(names).not.toContain(stripped);
      expect(cloud.created).toHaveLength(3);
    },
    TEST_MS,
  );
});

describe('a look that nobody waits for', () => {
  const flags = { ...EAGER, 'machine-safety-orphan-vms-period': '10m' };

  test(
    'comes when a driver says that several VMs match one machine',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 1 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags });
      await pool.untilUp(1, PATIENCE);
      const before = cloud.calls['ListMachines'] ?? 0;

      cloud.setFaults([{ method: 'GetMachineStatus', effect: 'fail', code: 'OutOfRange', times: 1 }]);
      await pool.scale(2);
      await eventually(() => (cloud.calls['ListMachines'] ?? 0) > before, PATIENCE);

      await pool.untilUp(2, PATIENCE);
    },
    TEST_MS,
  );

  test(
    'does not come when a Machine goes that never had a VM',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 1 });
      const warnings: string[] = [];
      const log: Logger = {
        ...silentLogger,
        warn: (_fields, message) => void warnings.push(message),
        child: () => log,
      };
      // Anyone who takes the finalizer away is to be faster than the controller, which gives it again.
      const gone = Promise.withResolvers<void>();
      let stripped = '';
      const intercept: Interceptor = async ({ text }, send) => {
        if (stripped !== '' && text.startsWith('PATCH machines ') && text.endsWith(stripped)) await gone.promise;
        return send();
      };
      await using _manager = await InProcessManager.start({ ...pool.access, flags, log, hooks: { intercept } });
      const [kept = ''] = await pool.untilUp(1, PATIENCE);
      const waits = await pool.postMachine({ class: { kind: 'MachineClass', name: 'absent' } });
      await eventually(async () => (await pool.machine(waits)).status?.lastOperation?.type === 'Create', PATIENCE);

      const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machines`;
      await pool.deleteMachine(waits);
      await eventually(async () => expect((await site.api.request(`${path}/${waits}`)).status).toBe(404), PATIENCE);
      // One that has a VM is told of, and after the other one.
      stripped = kept;
      await site.api.send('PATCH', `${path}/${kept}`, { metadata: { finalizers: null } });
      await site.api.send('DELETE', `${path}/${kept}`);
      gone.resolve();
      await eventually(() => warnings.some((text) => text.includes('vanished')), PATIENCE);

      expect(warnings.filter((text) => text.includes('vanished'))).toHaveLength(1);
      await pool.untilUp(1, PATIENCE);
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
      await site.api.send('DELETE', path);
      await eventually(() => cloud.calls['DeleteMachine'] === 1, PATIENCE);
      await site.api.send('PATCH', path, { metadata: { finalizers: null } });

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

  test.each<{ driver: string; capabilities: SimCloudOptions['capabilities'] }>([
    { driver: 'lists VMs', capabilities: {} },
    { driver: 'cannot list VMs', capabilities: { methods: new Set(['InitializeMachine']) } },
  ])(
    'is told of and replaced without a target cluster, too, where the provider is the only witness, whose driver $driver',
    async ({ capabilities }) => {
      await using cloud = await SimulatedCloud.start({ site, capabilities });
      await using pool = await Pool.create({ site, cloud, replicas: 3 });
      const clusters = { 'target-kubeconfig': 'none', 'control-kubeconfig': pool.kubeconfig };
      await using _manager = await InProcessManager.start({ ...pool.access, flags: { ...EAGER, ...clusters } });
      const available = async (): Promise<readonly string[]> => {
        const there = (await pool.machines()).filter(({ status }) => status?.currentStatus?.phase === 'Available');
        expect(there).toHaveLength(3);
        return there.map(({ metadata }) => metadata.name).toSorted();
      };
      const [victim = '', ...others] = await eventually(available, PATIENCE);
      const vm = cloud.created.find(({ machineName }) => machineName === victim);

      cloud.simulation.cloud.remove(vm?.providerID ?? '', 'vanished');
      const [event] = await eventually(async () => {
        const events = await eventsOf(pool, 'VMVanished');
        expect(events).toHaveLength(1);
        return events;
      }, PATIENCE);
      expect(event?.message).toContain(vm?.providerID);
      await eventually(async () => expect(await available()).not.toContain(victim), PATIENCE);

      expect(await available()).toEqual(expect.arrayContaining(others));
      expect(cloud.created).toHaveLength(4);

      // Nobody replaces a Machine without a set: it says itself what has become of its VM.
      const alone = await pool.postMachine();
      await eventually(async () => (await pool.machine(alone)).status?.currentStatus?.phase === 'Available', PATIENCE);
      cloud.simulation.cloud.remove((await pool.machine(alone)).spec.providerID ?? '', 'vanished');
      await eventually(async () => {
        const { status } = await pool.machine(alone);
        expect(status?.currentStatus?.phase).toBe('Failed');
        const told = status?.machineConditions?.find(({ type }) => type === 'VMCreated');
        expect(told).toMatchObject({ status: 'False', reason: 'VMVanished' });
      }, PATIENCE);
    },
    TEST_MS,
  );

  test(
    'is kept without a target cluster when more than three are missing at once: a provider that shows nothing costs none',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 4 });
      const clusters = { 'target-kubeconfig': 'none', 'control-kubeconfig': pool.kubeconfig };
      await using _manager = await InProcessManager.start({ ...pool.access, flags: { ...EAGER, ...clusters } });
      const available = async (): Promise<readonly string[]> => {
        const there = (await pool.machines()).filter(({ status }) => status?.currentStatus?.phase === 'Available');
        expect(there).toHaveLength(4);
        return there.map(({ metadata }) => metadata.name);
      };
      const before = await eventually(available, PATIENCE);

      const looks = cloud.calls['ListMachines'] ?? 0;
      cloud.setFaults(BLIND);
      await eventually(() => (cloud.calls['ListMachines'] ?? 0) >= looks + 16, PATIENCE);
      await eventually(async () => expect(await eventsOf(pool, 'ManyVMsMissing')).toHaveLength(1), PATIENCE);
      cloud.setFaults([]);
      const after = await eventually(available, PATIENCE);

      expect(after).toEqual(before);
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
      const before = cloud.calls['ListMachines'] ?? 0;

      cloud.setFaults(BLIND);
      await eventually(() => (cloud.calls['ListMachines'] ?? 0) >= before + 8, PATIENCE);
      cloud.setFaults([]);

      expect(await pool.untilUp(2, PATIENCE)).toEqual(names);
      expect(cloud.created).toHaveLength(2);
    },
    TEST_MS,
  );
});

test(
  'a provider that shows no VM while half of the Nodes work costs none of the other machines, and says so',
  async () => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: 4 });
    await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
    const names = await pool.untilUp(4, PATIENCE);
    const away = names.slice(0, 2);
    const turn = async (to: 'unknown' | 'ready'): Promise<void> => {
      for (const name of away) await cloud.simulation.nodes?.setReadiness(name, to);
    };

    await turn('unknown');
    await eventually(async () => {
      const phases = (await pool.machines()).map(({ status }) => status?.currentStatus?.phase ?? '');
      expect(phases.toSorted()).toEqual(['Running', 'Running', 'Unknown', 'Unknown']);
    }, PATIENCE);
    cloud.setFaults(BLIND);
    const before = cloud.calls['ListMachines'] ?? 0;
    await eventually(() => (cloud.calls['ListMachines'] ?? 0) >= before + 8, PATIENCE);
    await eventually(async () => expect(await eventsOf(pool, 'ReadyNodesWithoutVM')).toHaveLength(1), PATIENCE);
    cloud.setFaults([]);
    await turn('ready');

    expect(await pool.untilUp(4, PATIENCE)).toEqual(names);
    expect([cloud.created.length, cloud.deleted]).toEqual([4, 0]);
    expect(await eventsOf(pool, 'VMVanished')).toEqual([]);
  },
  TEST_MS,
);

test(
  'half a zone whose VMs are gone is replaced at the pace of replacements, and nobody has to release it',
  async () => {
    await using cloud = await SimulatedCloud.start({ site });
    await using pool = await Pool.create({ site, cloud, replicas: 6 });
    const flags = { ...EAGER, 'machine-health-timeout': '6s' };
    await using _manager = await InProcessManager.start({ ...pool.access, flags });
    const names = await pool.untilUp(6, PATIENCE);
    const [lost, kept] = [names.slice(0, 3), names.slice(3)];

    for (const { machineName, providerID } of await cloud.vms())
      if (lost.includes(machineName)) cloud.simulation.cloud.remove(providerID, 'vanished');
    await eventually(() => expect(cloud.created).toHaveLength(9), { ...PATIENCE, describe: 'the replacements' });

    expect(await pool.untilUp(6, PATIENCE)).toEqual(expect.arrayContaining(kept));
    // When the zone is well again, and the host is slow, the others may be replaced by health timeout.
    expect((await eventsOf(pool, 'VMVanished')).length).toBeGreaterThanOrEqual(1);
  },
  TEST_MS,
);

describe("an identity that is another machine's", () => {
  const IS_LONG = process.env['MACHINIST_FAULTS'] === 'long';
  const EACH = IS_LONG ? 50 : 3;
  const LONG = { timeoutMs: IS_LONG ? 600_000 : 90_000 };

  test(
    `is refused when a driver answers with it: ${EACH} machines that work outlive ${EACH} that were mixed up with them`,
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: EACH });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const before = await pool.untilUp(EACH, LONG);
      const vms = await idsOf(cloud);

      cloud.setFaults([{ method: 'CreateMachine', effect: 'other', times: EACH }]);
      await pool.scale(2 * EACH);
      const [refused] = await eventually(async () => {
        const events = await eventsOf(pool, 'CreateFailed');
        expect(events.length).toBeGreaterThan(0);
        return events;
      }, LONG);
      // Under load the VM that is answered with may be one of a machine in creation, which is known by its name only.
      expect(refused?.message).toMatch(
        /driver returned (VM|Node name) .*, which is the (VM|Node name) of Machine .*; the result is not/,
      );
      const mixedUp = (await pool.untilUp(2 * EACH, LONG)).filter((name) => !before.includes(name));
      for (const name of mixedUp) await pool.deleteMachine(name);
      await eventually(() => cloud.deleted === EACH, { ...LONG, describe: 'their VMs to go' });
      const after = await pool.untilUp(2 * EACH, LONG);

      expect(after).toEqual(expect.arrayContaining([...before]));
      expect(await idsOf(cloud)).toEqual(expect.arrayContaining([...vms]));
      expect([cloud.created.length, cloud.deleted]).toEqual([3 * EACH, EACH]);
    },
    IS_LONG ? 1_800_000 : TEST_MS,
  );

  test.each([
    { order: 'before that one is answered', answersAfterMs: 10_000 },
    { order: 'when that one was recorded', answersAfterMs: 0 },
  ])(
    'is not recorded when the creation of a machine is answered with the VM of another in creation, $order',
    async ({ answersAfterMs }) => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 0 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const recordOf = async (name: string): Promise<unknown> => (await pool.machine(name)).spec.providerID;
      const vmOf = (name: string): unknown => cloud.created.find(({ machineName }) => machineName === name)?.providerID;

      cloud.setFaults([{ method: 'CreateMachine', effect: 'late', delayMs: answersAfterMs, times: 1 }]);
      const owner = await pool.postMachine();
      await eventually(() => vmOf(owner) !== undefined, PATIENCE);
      if (answersAfterMs === 0) await eventually(async () => (await recordOf(owner)) === vmOf(owner), PATIENCE);
      cloud.setFaults([{ method: 'CreateMachine', effect: 'mixed-up', times: 1 }]);
      const other = await pool.postMachine();
      for (const name of [owner, other]) {
        await eventually(async () => {
          expect((await pool.machine(name)).status?.currentStatus?.phase).toBe('Running');
          expect(await recordOf(name)).toBe(vmOf(name));
        }, PATIENCE);
      }
      expect([cloud.created.length, cloud.deleted]).toEqual([2, 0]);

      await pool.deleteMachine(other);
      await eventually(() => cloud.deleted === 1, PATIENCE);
      expect(await idsOf(cloud)).toEqual([vmOf(owner)]);
      expect((await pool.machine(owner)).status?.currentStatus?.phase).toBe('Running');
      await pool.deleteMachine(owner);
      await pool.untilEmpty(PATIENCE);
    },
    TEST_MS,
  );

  test(
    'deletes nothing of that machine when somebody writes it into a Machine',
    async () => {
      await using cloud = await SimulatedCloud.start({ site });
      await using pool = await Pool.create({ site, cloud, replicas: 2 });
      await using _manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
      const [changed = '', victim = ''] = await pool.untilUp(2, PATIENCE);
      const { spec } = await pool.machine(victim);
      const nodeOf = async (name: string): Promise<string | undefined> =>
        (await pool.machine(name)).metadata.labels?.['node'];

      await pool.label(changed, { node: victim });
      await eventually(async () => (await nodeOf(changed)) === changed, { ...PATIENCE, describe: 'its own Node' });
      const copy = await pool.postMachine({ providerID: spec.providerID });
      await eventually(
        async () => (await pool.machine(copy)).status?.lastOperation?.errorCode === 'NotFound',
        PATIENCE,
      );
      await pool.deleteMachine(copy);
      await pool.deleteMachine(changed);
      await eventually(() => cloud.deleted === 1, PATIENCE);
      await eventually(async () => {
        const told = await eventsOf(pool, 'SharedProviderID');
        expect(told.map(({ involvedObject }) => involvedObject.name)).toEqual([copy]);
      }, PATIENCE);

      const names = await pool.untilUp(2, PATIENCE);
      expect(names).toContain(victim);
      expect(names).not.toContain(changed);
      expect((await pool.machine(victim)).spec.providerID).toBe(spec.providerID);
      expect([cloud.created.length, cloud.deleted]).toEqual([3, 1]);
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
        site.api.send('POST', '/api/v1/nodes', {
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
      await site.api.send('POST', '/api/v1/nodes', {
        metadata: { name, finalizers: [FINALIZER] },
        spec: { providerID },
      });

      const look = async (): Promise<Node> => (await site.api.request(`/api/v1/nodes/${name}`)).body as Node;
      await eventually(async () => {
        const { metadata } = await look();
        expect([metadata.annotations?.[NOT_MANAGED], metadata.finalizers]).toEqual(['1', undefined]);
      }, PATIENCE);

      const machines = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machines`;
      await site.api.send('POST', machines, {
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
