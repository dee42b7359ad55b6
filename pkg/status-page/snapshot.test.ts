import { describe, expect, test } from '@jest/globals';

import { machine } from '../../test/builders.ts';
import { fleetOf, NOW_MS, workOf } from '../../test/status-page/fleet-of-many.ts';
import { WELL } from '../../test/status-page/served-page.ts';
import { explain } from '../controllers/machine/explain/explain.ts';
import { detailsOf, reasonOf, statusOf } from '../fleet/node-texts.ts';
import { treeOf, type TreeNode, type TreeObjects } from '../fleet/tree.ts';
import { snapshotOf, type PageSnapshot } from './snapshot.ts';

const PROCESS = { ...WELL, history: [] };
const OBJECTS = fleetOf(3, 6);

function seen(objects: TreeObjects = OBJECTS, work = workOf(objects)): PageSnapshot {
  return snapshotOf(objects, work, PROCESS, NOW_MS);
}

function machinesIn(node: TreeNode): TreeNode[] {
  return node.kind === 'Machine' ? [node] : node.children.flatMap(machinesIn);
}

describe('what the status page shows', () => {
  test('is of each Machine what machinist tree and machinist describe say', () => {
    const nodes = treeOf(OBJECTS, NOW_MS).flatMap(machinesIn);

    const { machines } = seen();

    expect(machines).toHaveLength(18);
    expect(machines.map(({ phase, reason, attention }) => [phase, reason, attention])).toEqual(
      nodes.map((node) => [statusOf(node), reasonOf(node, NOW_MS), node.attention]),
    );
    const explained = new Map(OBJECTS.machines.map((one) => [one.metadata.name, explain(one, NOW_MS)]));
    for (const { name, message, waitingFor, nextStep } of machines) {
      const wanted = explained.get(name);
      expect({ message, waitingFor, nextStep }).toEqual({
        message: wanted?.message,
        waitingFor: wanted?.waitingFor,
        nextStep: wanted?.nextStep,
      });
    }
  });

  test('is of each MachineDeployment its counts, its rollout and what keeps it from being as requested', () => {
    const { fleets } = seen().sections;

    expect(fleets.map(({ key }) => key)).toEqual(
      ['worker-a', 'worker-b', 'worker-c'].map((name) => `shoot--prod/${name}`),
    );
    expect(fleets[0]).toMatchObject({
      kind: 'MachineDeployment',
      desired: 6,
      ready: 4,
      revision: '3',
      phases: { Terminating: 1, CrashLoopBackOff: 1, Unknown: 1, Pending: 1, Running: 2 },
      inTrouble: 3,
      sets: [{ name: 'worker-a-7d9f8', desired: 6, ready: 6 }],
      rollout: { state: 'done', updated: 6, available: 6, total: 6 },
    });
    const roots = treeOf(OBJECTS, NOW_MS);
    expect(fleets.map(({ troubles }) => troubles.map(({ text }) => text))).toEqual(
      roots.map((root) => detailsOf(root, NOW_MS).map(({ text }) => text)),
    );
    expect(fleets[1]?.rollout).toEqual({
      state: 'waiting',
      text: '2 out of 6 new replicas have been updated',
      updated: 2,
      available: 6,
      total: 6,
    });
  });

  test('names the MachineDeployment and the MachineSet of a Machine, and shows one without either, and a set without the first', () => {
    const alone = machine((one) => void (one.metadata.name = 'alone'));

    const whole = seen({ ...OBJECTS, machines: [...OBJECTS.machines, alone] });
    const setsOnly = seen({ ...OBJECTS, deployments: [] });

    expect(whole.machines[0]).toMatchObject({ fleet: 'shoot--prod/worker-a', set: 'worker-a-7d9f8' });
    expect(whole.machines.at(-1)).toMatchObject({ key: 'default/alone', phase: 'Running' });
    expect(whole.machines.at(-1)).not.toHaveProperty('fleet');
    expect(setsOnly.sections.fleets[0]).toMatchObject({
      kind: 'MachineSet',
      key: 'shoot--prod/worker-a-7d9f8',
      sets: [],
    });
    expect(setsOnly.sections.fleets[0]).not.toHaveProperty('rollout');
    expect(setsOnly.machines[0]).toMatchObject({ fleet: 'shoot--prod/worker-a-7d9f8' });
  });

  test('is what is being done about Machines, and nothing of it where nobody does anything', () => {
    const { machines, sections } = seen();
    const byPhase = new Map(machines.map((one) => [one.phase, one]));

    expect(byPhase.get('Terminating')?.work).toMatchObject({ running: [{ activity: 'drain' }] });
    expect(byPhase.get('CrashLoopBackOff')?.work).toMatchObject({ nextAttempt: { of: 'create', attempt: 3 } });
    expect(byPhase.get('Pending')?.work).toMatchObject({ running: [], failure: { timeout: 'creation' } });
    expect(byPhase.get('Running')?.work).toBeUndefined();
    expect(sections.drains.map(({ isBlocked }) => isBlocked)).toEqual([true]);
    expect(sections.retries.map(({ call }) => call)).toEqual(['create']);

    const standby = snapshotOf(OBJECTS, undefined, PROCESS, NOW_MS);
    expect(standby.sections).toMatchObject({ drains: [], retries: [], exhausted: [] });
    expect(standby.machines.every(({ work }) => work === undefined)).toBe(true);
  });

  test('is of a class without capacity that its Machines wait for it', () => {
    const CLASS = 'small';
    const waiting = machine((one) => {
      one.spec.class = { kind: 'MachineClass', name: CLASS };
      delete one.spec.providerID;
      one.status.currentStatus = { phase: '' };
    });
    const exhausted = [
      {
        machineClass: `default/${CLASS}`,
        message: 'full',
        failures: 1,
        nextAttempt: '2026-01-01T12:01:00Z',
      },
    ];

    const { machines } = seen(
      { deployments: [], sets: [], machines: [waiting] },
      { activities: [], retries: [], drains: [], exhausted },
    );

    expect(machines[0]?.work?.nextAttempt).toMatchObject({ waitsForClass: CLASS });
  });

  test('is of a text of any length a part', () => {
    const long = 'x'.repeat(100_000);
    const [first, ...others] = OBJECTS.machines.map((one) => structuredClone(one));
    if (first?.status?.lastOperation !== undefined) first.status.lastOperation.description = long;
    const work = { ...workOf(OBJECTS), exhausted: [] };
    const retries = work.retries.map((one) => ({ ...one, message: long }));

    const shown = seen({ ...OBJECTS, machines: first === undefined ? [] : [first, ...others] }, { ...work, retries });

    expect(JSON.stringify(shown).length).toBeLessThan(20_000);
  });
});
