import { afterAll, beforeAll, expect, test } from '@jest/globals';

import type { ControlPlane } from '../../hack/control-plane/control-plane.ts';
import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Event } from '../../pkg/apis/wire.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { Backup } from '../cloud/backup.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { identitiesOf } from '../cloud/trial.ts';
import { eventually } from '../expect/eventually.ts';
import { sampled } from '../expect/sampled.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';

/*
 * etcd is set back to a backup while the manager goes on: Machines and VMs that were made since are not known any more. Machines
 * of the backup live on with their VMs; so do VMs that are not known any more, however few they are, until somebody says that they are to
 * go. MACHINIST_FAULTS=long: 50 machines in the backup, 100 afterwards.
 */
const IS_LONG = process.env['MACHINIST_FAULTS'] === 'long';
const [FEW, MANY] = IS_LONG ? [50, 100] : [4, 7];
const PATIENCE = { timeoutMs: 240_000 };
const TEST_MS = 900_000;
/** The loops look often, and trust what they see at once. */
const EAGER = {
  'machine-safety-overshooting-period': '1s',
  'machine-safety-orphan-vms-period': '1s',
  'machine-safety-orphan-vms-grace': '1s',
  'machine-safety-grace': '0s',
};
/** Looks at the provider, after which what was going to be deleted has been. */
const LOOKS = 6;

let site: Site<ControlPlane>;

beforeAll(async () => {
  site = await Site.open();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

/** The revision of etcd. */
async function revision(): Promise<number> {
  const { body } = await site.api.request('/api/v1/namespaces?limit=1');
  return Number((body as { metadata: { resourceVersion: string } }).metadata.resourceVersion);
}

/** Writes until the revision has passed another one. */
async function pushPast(wanted: number): Promise<void> {
  const path = '/api/v1/namespaces/default';
  const contentType = 'application/merge-patch+json';
  for (let i = 0; (await revision()) <= wanted; i++) {
    const many = Array.from({ length: 50 }, (_, n) => ({ metadata: { annotations: { pushed: `${i}/${n}` } } }));
    await Promise.all(many.map((body) => site.api.request(path, { method: 'PATCH', contentType, body })));
  }
}

/** Somebody else writes to the MachineSets of a namespace. */
async function touchSets(namespace: string): Promise<void> {
  const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${namespace}/machinesets`;
  const contentType = 'application/merge-patch+json';
  const { body } = await site.api.request(path);
  for (const { metadata } of (body as { items: { metadata: { name: string } }[] }).items) {
    const touch = { metadata: { annotations: { touched: 'yes' } } };
    await site.api.request(`${path}/${metadata.name}`, { method: 'PATCH', contentType, body: touch });
  }
}

interface Row {
  readonly what: string;
  /** Of which simulated worlds have many. */
  readonly kind?: string;
  readonly flags?: Readonly<Record<string, string>>;
  /** Others write so much, before the manager reaches the server again, that its revision is higher than ever. */
  readonly pushes?: true;
  /** Its Lease is set back too: it may end. Its successor, which knows nothing of what was forgotten, is started as outages.md says. */
  readonly mayEnd?: true;
}

const ROWS: readonly Row[] = [
  { what: 'a manager goes on', kind: 'set back' },
  { what: 'others write much before the manager is back', pushes: true },
  { what: 'a leader goes on', kind: 'set back', flags: { 'leader-elect': 'true' }, mayEnd: true },
];

test.each(
  sampled({
    name: 'histories that go back',
    rows: ROWS,
    nameOf: ({ what }) => what,
    kindsOf: ({ what, kind = what }) => [kind],
  }),
)(
  'Machines of a backup keep their VMs when etcd is set back to it: $what',
  async ({ what, flags = {}, pushes, mayEnd }) => {
    await using proxy = await FaultProxy.start(site.plane.connection.url);
    await using cloud = await SimulatedCloud.start({ site, latencyMs: { ...QUICK, create: 100, delete: 100 } });
    await using pool = await Pool.create({ site, cloud, replicas: FEW, maxSurge: 2, maxUnavailable: 1 });
    const kubeconfig = await site.kubeconfigThrough(proxy.url);
    await using managers = new AsyncDisposableStack();
    const start = async (more: Row['flags'] = {}): Promise<InProcessManager> =>
      managers.use(
        await InProcessManager.start({ ...pool.access, kubeconfig, flags: { ...EAGER, ...flags, ...more } }),
      );
    let manager = await start();
    await pool.untilUp(FEW, PATIENCE);
    const known = identitiesOf(await pool.machines());
    const kept = new Set((await cloud.vms()).map(({ providerID }) => providerID));
    await using backup = await Backup.take(site.plane);
    await pool.scale(MANY);
    await pool.untilUp(MANY, PATIENCE);
    const before = await revision();

    await backup.restore(async () => {
      if (pushes) proxy.set('refuse');
      await Promise.resolve();
    });
    if (pushes) {
      await pushPast(before);
      proxy.set('up');
    }

    const settled = eventually(async () => {
      expect(await manager.metric('machinist_cluster_set_back_total', 'cluster="control"')).toBe(1);
      expect(await manager.metric('machinist_cluster_outage')).toBe(0);
    }, PATIENCE);
    const hasEnded =
      mayEnd === true && (await Promise.race([settled.then(() => false), manager.ended.then(() => true)]));
    if (hasEnded) {
      settled.catch(() => undefined);
      manager = await start({ 'machine-safety-orphan-vms-dry-run': 'true' });
    } else await settled;
    const looked = cloud.calls['ListMachines'] ?? 0;
    await eventually(() => (cloud.calls['ListMachines'] ?? 0) > looked + LOOKS, PATIENCE);

    await eventually(async () => expect(identitiesOf(await pool.machines())).toEqual(known), PATIENCE);
    const counted = { made: cloud.created.length, lost: cloud.deleted };
    process.stdout.write(
      `${what}: ${counted.made} VMs made, ${counted.lost} deleted, the leader ${hasEnded ? 'ended' : 'went on'}\n`,
    );
    expect(counted).toEqual({ made: MANY, lost: 0 });
    const tells = (reason: string): Promise<readonly string[]> =>
      eventually(async () => {
        const { body } = await site.api.request(`/api/v1/namespaces/${pool.namespace}/events`);
        const told = (body as { items: Event[] }).items.filter((event) => event.reason === reason);
        expect(new Set(told.map(({ involvedObject }) => involvedObject.kind))).toEqual(new Set(['MachineClass']));
        return told.map(({ message = '' }) => message);
      }, PATIENCE);
    if (hasEnded) {
      await tells('OrphanVMFound');
      return;
    }
    expect(await tells('MachinesForgotten')).toEqual([expect.stringContaining(`${MANY - FEW} Machines`)]);
    expect(await tells('OrphanVMsHeld')).toEqual([expect.stringContaining(DELETE_ORPHAN_VMS_UNTIL_ANNOTATION)]);
    expect(await manager.metric('machinist_orphan_vms_held')).toBe(MANY - FEW);

    const forgotten = cloud.created.map(({ providerID }) => providerID).filter((providerID) => !kept.has(providerID));
    await pool.annotateClass({ [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: toTimestamp(Date.now() + 3_600_000) });
    await eventually(() => expect(cloud.removed.toSorted()).toEqual(forgotten.toSorted()), PATIENCE);
    expect(identitiesOf(await pool.machines())).toEqual(known);
  },
  TEST_MS,
);

test(
  'Machines of a backup keep their VMs when etcd alone is set back to it, and the API server goes on',
  async () => {
    await using cloud = await SimulatedCloud.start({ site, latencyMs: { ...QUICK, create: 100, delete: 100 } });
    await using pool = await Pool.create({ site, cloud, replicas: FEW, maxSurge: 2, maxUnavailable: 1 });
    await using manager = await InProcessManager.start({ ...pool.access, flags: EAGER });
    await pool.untilUp(FEW, PATIENCE);
    const known = identitiesOf(await pool.machines());
    const vms = new Set((await cloud.vms()).map(({ providerID }) => providerID));
    await using backup = await Backup.take(site.plane);
    await pool.scale(MANY);
    await pool.untilUp(MANY, PATIENCE);
    const before = await revision();

    await backup.restoreEtcdAlone();
    // Only now does the API server tell again of what is written: the set of the backup meets the Machines of the future.
    await pushPast(before);
    await touchSets(pool.namespace);

    const lost = (): string[] => cloud.removed.filter((providerID) => vms.has(providerID));
    const readiness = (): Promise<string> => fetch(`${manager.url}/readyz?verbose`).then((answer) => answer.text());
    await eventually(async () => expect(await readiness()).toContain('restart its API servers'), PATIENCE);
    const looked = await manager.metric('machinist_cluster_probes_total', 'cluster="control",result="up"');
    await eventually(
      async () =>
        expect(await manager.metric('machinist_cluster_probes_total', 'cluster="control",result="up"')).toBeGreaterThan(
          looked + LOOKS,
        ),
      PATIENCE,
    );
    expect(await manager.metric('machinist_cluster_outage')).toBe(1);
    expect({ made: cloud.created.length, lost: lost() }).toEqual({ made: MANY, lost: [] });

    await site.plane.apiserver.stop('SIGKILL');
    await site.plane.apiserver.start();
    await eventually(async () => expect(await manager.metric('machinist_cluster_outage')).toBe(0), PATIENCE);
    const listed = cloud.calls['ListMachines'] ?? 0;
    await eventually(() => (cloud.calls['ListMachines'] ?? 0) > listed + LOOKS, PATIENCE);
    await eventually(async () => expect(identitiesOf(await pool.machines())).toEqual(known), PATIENCE);
    process.stdout.write(
      `etcd alone: ${cloud.created.length} VMs made, ${cloud.deleted} deleted, ${lost().length} healthy\n`,
    );
    expect({ made: cloud.created.length, lost: lost() }).toEqual({ made: MANY, lost: [] });
    expect(await manager.metric('machinist_cluster_set_back_total', 'cluster="control"')).toBe(1);
  },
  TEST_MS,
);

test(
  'a target cluster that is set back costs no machine, and the control cluster goes on',
  async () => {
    await using target = await Site.open();
    await using cloud = await SimulatedCloud.start({ site: target, latencyMs: { ...QUICK, create: 100, delete: 100 } });
    await using pool = await Pool.create({ site, cloud, replicas: FEW });
    const flags = { ...EAGER, 'target-kubeconfig': target.kubeconfig };
    await using manager = await InProcessManager.start({ ...pool.access, flags });
    const untilRunning = async (count: number): Promise<void> => {
      await eventually(async () => {
        const phases = (await pool.machines()).map(({ status }) => status?.currentStatus?.phase);
        expect(phases).toEqual(Array.from({ length: count }, () => 'Running'));
      }, PATIENCE);
    };
    await untilRunning(FEW);
    await using backup = await Backup.take(target.plane);
    await pool.scale(MANY);
    await untilRunning(MANY);
    const known = identitiesOf(await pool.machines());

    await backup.restore();

    const setBacks = (cluster: string): Promise<number> =>
      manager.metric('machinist_cluster_set_back_total', `cluster="${cluster}"`);
    await eventually(async () => {
      expect(await setBacks('target')).toBe(1);
      expect(await manager.metric('machinist_cluster_outage')).toBe(0);
    }, PATIENCE);
    const looked = cloud.calls['ListMachines'] ?? 0;
    await eventually(() => (cloud.calls['ListMachines'] ?? 0) > looked + LOOKS, PATIENCE);
    expect(await setBacks('control')).toBe(0);
    expect(identitiesOf(await pool.machines())).toEqual(known);
    expect([cloud.created.length, cloud.deleted]).toEqual([MANY, 0]);
  },
  TEST_MS,
);
