import { mkdtemp, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { applyManifests } from '../../hack/control-plane/apply.ts';
import type { Logger } from '../../pkg/base/log/logger.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { eventually } from '../expect/eventually.ts';
import { FaultProxy } from '../proxy/fault-proxy.ts';
import { allows, grant } from './shipped-roles.ts';

/*
 * An API server that is just starting answers 403 to what it grants a second later, and roles are applied after the process was
 * started: no refusal is the last word, and as long as it holds work back everybody is told.
 */

const PATIENCE = { timeoutMs: 90_000, intervalMs: 100 };
const TEST_MS = 480_000;

let site: Site;
let cloud: SimulatedCloud;
let pool: Pool;
let users = 0;
/** A user who has no permission yet. */
let user: string;

beforeAll(async () => {
  site = await Site.drawn();
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

beforeEach(async () => {
  user = `newcomer-${(users += 1)}`;
  cloud = await SimulatedCloud.start({ site });
  pool = await Pool.create({ site, cloud, replicas: 2 });
});

afterEach(async () => {
  await pool[Symbol.asyncDispose]();
  await cloud[Symbol.asyncDispose]();
});

interface Line {
  readonly level: string;
  readonly message: string;
  readonly err: unknown;
}

/** A log whose lines can be looked at. */
function recordingLog(): { log: Logger; lines: Line[] } {
  const lines: Line[] = [];
  const record =
    (level: string) =>
    ({ err }: { err?: unknown }, message: string): void =>
      void lines.push({ level, message, err });
  const log: Logger = {
    ...silentLogger,
    error: record('error'),
    warn: record('warn'),
    info: record('info'),
    child: () => log,
  };
  return { log, lines };
}

async function readinessOf(manager: InProcessManager): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${manager.url}/readyz?verbose`);
  return { status: answer.status, text: await answer.text() };
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** Lets `user` do this, in all namespaces. */
async function allow(what: string, rules: readonly Rule[]): Promise<void> {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const metadata = { name: `${what}-of-${user}` };
  await applyManifests(site.api, [
    { apiVersion, kind: 'ClusterRole', metadata, rules },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    },
  ]);
}

/** Lets `user` read Nodes, which is what probes of the target do, and nothing else: VolumeAttachments are refused. */
async function grantProbes(): Promise<void> {
  await allow('probes', [{ apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] }]);
}

/** Takes from `user` what the shipped role of a target grants of one resource; all else stays. */
async function withdraw(resource: string): Promise<void> {
  const { body } = await site.api.request(`${RBAC}/clusterroles/machinist-target`);
  const { rules } = body as { rules: readonly Rule[] };
  await allow(
    'all-else',
    rules.filter(({ resources }) => !resources.includes(resource)),
  );
  await site.api.request(`${RBAC}/clusterrolebindings/machinist-target-${user}`, { method: 'DELETE' });
}

describe('an API server that refuses at first what it grants later', () => {
  test(
    'holds up the work of a leader, which is told everywhere, and goes on by itself once the target grants it',
    async () => {
      await using target = await FaultProxy.start(site.plane.connection.url);
      target.set('refuse');
      const { log, lines } = recordingLog();
      await using manager = await InProcessManager.start({
        ...pool.access,
        log,
        flags: {
          'target-kubeconfig': await site.kubeconfigThrough(target.url, user),
          // A probe may take a third of it, and takes long on a busy host.
          'machine-safety-apiserver-statuscheck-timeout': '9s',
          'machine-safety-apiserver-statuscheck-period': '9s',
        },
      });
      const outage = (): Promise<number> => manager.metric('machinist_cluster_outage', 'cluster="target"');
      const held = (): Promise<number> => manager.metric('machinist_work_held', 'waits_for="catch-up",of="target"');
      await eventually(async () => (await held()) === 2 && (await outage()) === 1, PATIENCE);

      target.set('up');
      await eventually(async () => {
        expect((await readinessOf(manager)).text).toMatch(/target: outage, .*last probe: .*nodes is forbidden/);
      }, PATIENCE);
      await grantProbes();
      await eventually(async () => (await outage()) === 0, PATIENCE);
      const readiness = await eventually(async () => {
        const shown = await readinessOf(manager);
        expect(shown.text).toMatch(
          /^\[-\] work failed: .*machine-controller held since .*, reading the target cluster after an outage/m,
        );
        expect(shown.text).toContain('is forbidden');
        expect(lines.map(({ level, message }) => `${level} ${message}`)).toContain(
          'warn reading the target cluster after an outage failed, retrying',
        );
        return shown;
      }, PATIENCE);

      expect(readiness.status).toBe(503);
      expect(await held()).toBe(2);
      expect(
        await manager.metric('machinist_work_held_since_timestamp_seconds', 'waits_for="catch-up"'),
      ).toBeGreaterThan(0);
      expect(cloud.created).toEqual([]);

      await grant(site.api, 'target', 'default', user);
      await pool.untilUp(2);

      // So short a timeout makes an outage of a busy moment.
      await eventually(async () => {
        expect(await held()).toBe(0);
        expect(await readinessOf(manager)).toMatchObject({ status: 200, text: expect.stringContaining('[+] work ok') });
      }, PATIENCE);
      expect(lines.map(({ message }) => message)).toContain('read the target cluster completely');
      expect(cloud.created).toHaveLength(2);
    },
    TEST_MS,
  );

  test(
    'and that goes on to refuse what it granted before holds all work, whatever its cache shows, until that was listed again',
    async () => {
      await grant(site.api, 'target', 'default', user);
      const { log, lines } = recordingLog();
      await using manager = await InProcessManager.start({
        ...pool.access,
        log,
        flags: { 'target-kubeconfig': await site.kubeconfigThrough(site.plane.connection.url, user) },
      });
      const held = (): Promise<number> => manager.metric('machinist_work_held', 'waits_for="caches",of="target"');
      const refusals = (): Promise<number> => manager.metric('machinist_gate_refusals_total', 'reason="unproven"');
      await pool.untilUp(2);

      await withdraw('volumeattachments');
      await eventually(async () => (await held()) === 1, PATIENCE);
      const readiness = await readinessOf(manager);
      const refusedBefore = await refusals();
      await pool.scale(3);
      await eventually(async () => (await refusals()) > refusedBefore, PATIENCE);

      expect(readiness.status).toBe(503);
      expect(readiness.text).toMatch(
        /^\[-\] work failed: process held since .*, filling the caches of the target cluster \(missing permissions in the target cluster: read volumeattachments\.storage\.k8s\.io: apply deploy\/rbac\/target\.yaml \(.*is forbidden/m,
      );
      expect(await manager.metric('machinist_cluster_outage', 'cluster="target"')).toBe(0);
      expect(cloud.created).toHaveLength(2);

      await grant(site.api, 'target', 'default', user);
      await pool.untilUp(3);

      expect(await held()).toBe(0);
      expect(await readinessOf(manager)).toMatchObject({ status: 200 });
      const told = lines.map(({ level, message }) => `${level} ${message}`);
      expect(told).toContain('warn held all work of the cluster: not permitted to read a kind');
      expect(told).toContain('info reading a kind is permitted now');
    },
    TEST_MS,
  );

  /** A process that applies for its Leases as the user, until it ends by itself. */
  async function runToItsEnd(): Promise<{ readonly code: number; readonly lines: readonly Line[] }> {
    const { log, lines } = recordingLog();
    await using manager = await InProcessManager.start({
      ...pool.access,
      log,
      flags: {
        'control-kubeconfig': await site.kubeconfigThrough(site.plane.connection.url, user),
        'leader-elect': 'true',
      },
    });
    return { code: await manager.ended, lines };
  }

  test(
    'keeps a process that may do nothing from leading, which ends with one line that names all that is missing, and tells of no outage',
    async () => {
      const { code, lines } = await runToItsEnd();

      expect(code).toBe(1);
      expect(lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([
        {
          level: 'error',
          message: 'could not start',
          err: expect.stringMatching(
            /^missing permissions in the control cluster: .*machines\.machine\.sapcloud\.io .*, and \d+ more: apply deploy\/rbac\/control\.yaml; .* get namespaces\.core kube-system: apply deploy\/rbac\/control-identity\.yaml$/,
          ),
        },
      ]);
      expect(lines.at(-1)?.message).toBe('could not start');
    },
    TEST_MS,
  );

  test(
    'keeps a process that may not read the identity of the cluster from leading, which ends with one line that says what to apply',
    async () => {
      await grant(site.api, 'control', pool.namespace, user);
      const { code, lines } = await runToItsEnd();

      expect(code).toBe(1);
      expect(lines.filter(({ level }) => level === 'error')).toEqual([
        {
          level: 'error',
          message: 'could not start',
          err: expect.stringMatching(/get namespaces\.core kube-system: apply deploy\/rbac\/control-identity\.yaml$/),
        },
      ]);
      expect(lines.map(({ message }) => message)).not.toContain('became leader');
    },
    TEST_MS,
  );

  test(
    'keeps a process that may not take its Lease from leading, which ends with one line that names the file',
    async () => {
      await grant(site.api, 'control-identity', 'default', user);
      await grant(site.api, 'control', pool.namespace, user);
      await grant(site.api, 'target', 'default', user);
      const role = `${RBAC}/namespaces/${pool.namespace}/roles/machinist-control`;
      const { body } = await site.api.request(role);
      const { rules } = body as { rules: readonly Rule[] };
      // One for each Lease; the last first, so that the others keep their places.
      const places = rules.flatMap(({ verbs }, i) => (verbs.includes('update') ? [i] : [])).toReversed();
      await site.api.request(role, {
        method: 'PATCH',
        contentType: 'application/json-patch+json',
        body: places.map((place) => ({ op: 'remove', path: `/rules/${place}` })),
      });
      const { namespace } = pool;
      const update = { group: 'coordination.k8s.io', resource: 'leases', name: 'machine-controller', verb: 'update' };
      const mayUpdate = (): Promise<boolean> =>
        allows(site.api, { user, resourceAttributes: { ...update, namespace } });
      await eventually(async () => !(await mayUpdate()), PATIENCE);
      const { code, lines } = await runToItsEnd();

      expect(code).toBe(1);
      expect(lines.filter(({ level }) => level === 'error')).toEqual([
        {
          level: 'error',
          message: 'could not start',
          err: expect.stringMatching(
            /missing permissions in the control cluster: get, update, watch leases\.coordination\.k8s\.io machine-controller-manager .*: apply deploy\/rbac\/control\.yaml$/,
          ),
        },
      ]);
      expect(lines.map(({ message }) => message)).not.toContain('became leader');
    },
    TEST_MS,
  );

  test(
    'and a driver that cannot be reached is told everywhere, too, until it can',
    async () => {
      const { log, lines } = recordingLog();
      const socket = join(await mkdtemp(join(tmpdir(), 'late-driver-')), 'driver.sock');
      await using manager = await InProcessManager.start({ ...pool.access, driver: `unix://${socket}`, log });
      const held = (): Promise<number> => manager.metric('machinist_work_held', 'waits_for="driver",of="sim"');
      const away = await eventually(async () => {
        expect(await held()).toBe(1);
        const shown = await readinessOf(manager);
        // The other parts of the process may still be starting.
        expect(shown.status).toBe(200);
        return shown;
      }, PATIENCE);
      const upAway = await manager.metric('machinist_driver_up', 'provider="sim"');

      await symlink(pool.access.driver.replace('unix://', ''), socket);
      await pool.untilUp(2);

      expect(away.text).toMatch(
        /^\[!\] work degraded: machine-controller held since .*, connecting to the driver of provider sim \(/m,
      );
      expect(lines.filter(({ message }) => message === 'could not connect to driver, retrying')).toHaveLength(1);
      expect(await held()).toBe(0);
      expect([upAway, await manager.metric('machinist_driver_up', 'provider="sim"')]).toEqual([0, 1]);
    },
    TEST_MS,
  );

  test(
    'leaves out caches that the process can do without only for as long as it refuses them',
    async () => {
      const role = `/apis/rbac.authorization.k8s.io/v1/namespaces/${pool.namespace}/roles/machinist-machine-controller-control`;
      const mayListSets = (): Promise<boolean> =>
        allows(site.api, {
          user,
          resourceAttributes: {
            group: 'machine.sapcloud.io',
            resource: 'machinesets',
            verb: 'list',
            namespace: pool.namespace,
          },
        });
      await grant(site.api, 'control-identity', 'default', user);
      await grant(site.api, 'control-machine-controller', pool.namespace, user);
      await site.api.request(role, {
        method: 'PATCH',
        contentType: 'application/json-patch+json',
        body: [{ op: 'remove', path: '/rules/2' }],
      });
      await eventually(async () => !(await mayListSets()), PATIENCE);
      const { log, lines } = recordingLog();
      await using manager = await InProcessManager.start({
        ...pool.access,
        log,
        flags: {
          controllers: 'machine,machine-class,secret',
          'control-kubeconfig': await site.kubeconfigThrough(site.plane.connection.url, user),
        },
      });
      const without = await eventually(async () => {
        const shown = await readinessOf(manager);
        expect(shown.status).toBe(200);
        return shown;
      }, PATIENCE);

      await grant(site.api, 'control-machine-controller', pool.namespace, user);
      const after = await eventually(async () => {
        const shown = await readinessOf(manager);
        expect(shown.text).toContain('[+] caches ok\n');
        return shown;
      }, PATIENCE);

      expect(without.text).toContain(
        '[!] caches degraded: without MachineSet.machine.sapcloud.io, MachineDeployment.machine.sapcloud.io (not permitted to read)',
      );
      expect(lines.filter(({ message }) => message.startsWith('continuing without MachineSets'))).toHaveLength(2);
      expect(after.status).toBe(200);
    },
    TEST_MS,
  );
});
