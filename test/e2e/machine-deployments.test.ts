import { describe, expect, test } from '@jest/globals';

import type { MachineDeploymentStatus } from '../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import { machineDeployments } from '../../pkg/kube/client/resource.ts';
import { eventually } from '../expect/eventually.ts';
import { isKept, running } from './fleet.ts';
import { History, type Moment } from './history.ts';
import type { Installation } from './installation.ts';
import { machine, machineClass, machineDeployment, NAMESPACE } from './manifests.ts';
import { onOneInstallation } from './scenario.ts';

const scenario = onOneInstallation();
/** Until a dead kubelet shows (16 s), its machine is given up (20 s), and another one has joined. */
const REPLACEMENT_MS = 90_000;
/** Other tests share the host. */
const DELETED = '--timeout=90s';

describe('a MachineDeployment', () => {
  test(
    'has as many machines as kubectl scale says, and those that stay are left alone',
    scenario(async (installation) => {
      const { kubectl } = installation;
      await installation.apply(machineDeployment('workers', 3));
      const three = await running(installation, 3);
      await using history = await History.begin(installation.admin);

      await kubectl('scale', 'machinedeployment', 'workers', '--replicas=5');
      const five = await running(installation, 5);
      await kubectl('scale', 'machinedeployment', 'workers', '--replicas=1');
      const one = await running(installation, 1);
      await history.caughtUp();

      expect(uids(five)).toEqual(expect.arrayContaining(uids(three)));
      expect(uids(five)).toEqual(expect.arrayContaining(uids(one)));
      expect(history.names).toHaveLength(5);
      await settled(installation, 'workers', {
        replicas: 1,
        updatedReplicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
      });
    }),
  );

  test(
    'replaces a machine that is deleted, and the machine of a Node that is deleted',
    scenario(async (installation) => {
      const { kubectl } = installation;
      await installation.apply(machineDeployment('workers', 2));
      const before = names(await running(installation, 2));
      const [first = '', second = ''] = before;
      await using history = await History.begin(installation.admin);

      await kubectl('delete', 'machine', first, DELETED);
      const between = names(await running(installation, 2));
      await kubectl('delete', 'node', second, DELETED);
      const after = names(await running(installation, 2));
      await history.caughtUp();

      expect(between).toContain(second);
      expect(before).not.toEqual(expect.arrayContaining(after));
      expect(after).not.toContain(second);
      expect(history.names).toHaveLength(4);
      expect(history.phasesOf(second)).toEqual(['Running', 'Terminating', 'Gone']);
      const told = await kubectl('get', 'events', `--field-selector=involvedObject.name=${second},reason=NodeDeleted`);
      expect(told).toContain(`Node ${second} was deleted, so the machine is deleted too.`);
    }),
  );

  // promise: cluster-api/machinedeployments/machine-whose-node-stays
  test(
    'replaces a machine that died once its health timeout has passed, and touches no other',
    scenario(async (installation) => {
      await installation.apply(machineDeployment('workers', 3));
      const before = await running(installation, 3);
      const [dead = '', ...healthy] = names(before);
      await using history = await History.begin(installation.admin);

      installation.vms.kill(dead);
      await eventually(() => expect(history.phasesOf(dead)).toContain('Unknown'), { timeoutMs: REPLACEMENT_MS });
      await eventually(async () => {
        expect(await installation.kubectl('describe', 'machine', dead)).toMatch(/Warning +Unhealthy /);
      });
      await eventually(() => expect(history.phasesOf(dead)).toContain('Gone'), { timeoutMs: REPLACEMENT_MS });
      const after = names(await running(installation, 3));
      await history.caughtUp();

      expect(history.phasesOf(dead)).toEqual(['Running', 'Unknown', 'Failed', 'Terminating', 'Gone']);
      expect(msInPhase(history.moments, dead, 'Unknown')).toBeGreaterThanOrEqual(19_000); // timestamps are whole seconds
      for (const name of healthy) expect(history.phasesOf(name)).toEqual(['Running']);
      expect(after).toEqual(expect.arrayContaining(healthy));
      expect(history.names).toHaveLength(4);
    }),
  );

  test(
    'rolls to another class within maxSurge and maxUnavailable at every instant',
    scenario(async (installation) => {
      await installation.apply(machineClass('class-b'), machineDeployment('workers', 3, 1));
      const old = names(await running(installation, 3));
      await using history = await History.begin(installation.admin);

      const change = { spec: { template: { spec: { class: { name: 'class-b' } } } } };
      await installation.kubectl('patch', 'mcd', 'workers', '--type=merge', '-p', JSON.stringify(change));
      const rolled = await running(installation, 3, 'class-b');
      await history.caughtUp();

      expect(Math.max(...history.moments.map(keptIn))).toBeLessThanOrEqual(3 + 1);
      expect(Math.min(...history.moments.map(runningIn))).toBeGreaterThanOrEqual(3 - 1);
      expect(history.names).toEqual([...old, ...names(rolled)].toSorted());
      await settled(installation, 'workers', {
        replicas: 3,
        updatedReplicas: 3,
        availableReplicas: 3,
      });
    }),
  );

  test(
    'goes with all its machines while its class and Secret are being deleted too',
    scenario(async (installation) => {
      await installation.apply(machineDeployment('workers', 2), machine('by-hand'));
      await running(installation, 3);

      // Class and Secret first: machines can be deleted only with what these say.
      await installation.kubectl('delete', 'machineclasses,secrets', '--all', '--wait=false');
      await installation.kubectl('delete', 'machinedeployment/workers', 'machine/by-hand', DELETED);

      // What remains to be checked is that nothing is left, as after every scenario.
      expect(names(await installation.machines())).toEqual([]);
    }),
  );
});

function names(machines: readonly { readonly metadata: { readonly name: string } }[]): string[] {
  return machines.map(({ metadata }) => metadata.name).toSorted();
}

function uids(machines: readonly { readonly metadata: { readonly uid: string } }[]): string[] {
  return machines.map(({ metadata }) => metadata.uid);
}

function keptIn(moment: Moment): number {
  return [...moment.values()].filter(isKept).length;
}

function runningIn(moment: Moment): number {
  return [...moment.values()].filter((one) => isKept(one) && one.status?.currentStatus?.phase === 'Running').length;
}

/** From the beginning of a phase to the beginning of the next, as the machine itself tells it. */
function msInPhase(moments: readonly Moment[], name: string, phase: string): number {
  const told = moments.map((moment) => moment.get(name)?.status?.currentStatus);
  const first = told.findIndex((status) => status?.phase === phase);
  const next = told.slice(first).find((status) => status?.phase !== phase);
  return Date.parse(next?.lastUpdateTime ?? '') - Date.parse(told[first]?.lastUpdateTime ?? '');
}

/** Waits until the MachineDeployment tells of exactly this; the machines may have got there before. */
async function settled({ admin }: Installation, name: string, status: MachineDeploymentStatus): Promise<void> {
  await eventually(async () => {
    const found = await admin.reader.get(machineDeployments, { namespace: NAMESPACE, name });
    expect(found.status).toMatchObject(status);
  });
}
