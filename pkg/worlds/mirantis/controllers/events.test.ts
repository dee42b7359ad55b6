import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { cloudCluster, clusterMachine, machinePool } from '../../../../test/cluster-machine.ts';
import { FrontEndWorld } from '../../../../test/front-end-world.ts';
import type { MachineStatus } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ProviderCondition } from '../api/machine.ts';
import { configMaps, machines } from '../../../kube/client/resource.ts';
import { cloudClusters, clusterMachines, machinePools } from '../api/resources.ts';
import { reportableChanges, EVENT_REASONS } from './events.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../../../docs/reference/events.md'), 'utf8');
const KEY = 'default/m-1';
const SINCE = 'machine.sapcloud.io/maintenance-since';

const condition = (type: string, ready: boolean, message: string): ProviderCondition => ({ type, ready, message });

test('the reference lists the reasons with their types', () => {
  const section = PAGE.split('\n## ').find((part) => part.startsWith('Machines, MachinePools and Clusters')) ?? '';
  const listed = [...section.matchAll(/^\| (\w+) +\| (Normal|Warning) /gm)].map(
    ([, reason, type]) => `${reason} ${type}`,
  );
  const told = Object.values(EVENT_REASONS).flatMap(({ Normal, Warning }) => [
    `${Normal} Normal`,
    `${Warning} Warning`,
  ]);

  expect(new Set(listed)).toEqual(new Set(told));
});

describe('a condition is told', () => {
  test.each([
    { what: 'that is new', before: [], after: condition('LCM', false, 'a'), reasons: ['Progress'] },
    {
      what: 'of which nothing has changed',
      before: [condition('LCM', false, 'a')],
      after: condition('LCM', false, 'a'),
      reasons: [],
    },
    {
      what: 'with another message',
      before: [condition('LCM', false, 'a')],
      after: condition('LCM', false, 'b'),
      reasons: ['Progress'],
    },
    {
      what: 'that was not ready',
      before: [condition('Kubelet', false, 'a')],
      after: condition('Kubelet', true, 'a'),
      reasons: ['KubeletReady'],
    },
    { what: 'of a Node that there never was', before: [], after: condition('Kubelet', false, 'a'), reasons: [] },
    { what: 'of somebody else', before: [], after: condition('Swarm', false, 'a'), reasons: [] },
    { what: 'after nonsense', before: 'text' as never, after: condition('LCM', false, 'a'), reasons: ['Progress'] },
  ])('$what: $reasons', ({ before, after, reasons }) => {
    expect(reportableChanges(before, [after], new Set()).map(({ reason }) => reason)).toEqual(reasons);
  });

  test('as a warning when somebody has to look at it', () => {
    expect(reportableChanges([], [condition('LCM', false, 'a')], new Set(['LCM']))).toEqual([
      { type: 'Warning', reason: 'Problem', message: 'a' },
    ]);
  });
});

describe('a Machine tells', () => {
  /** A Machine that was made, of which ours then shows this. */
  async function shown(status: MachineStatus, annotations: Record<string, string> = {}): Promise<FrontEndWorld> {
    const world = new FrontEndWorld();
    world.client.wrote(clusterMachines, clusterMachine());
    await world.settle(() => world.pass(KEY));
    const ours = world.machines.get(KEY) ?? machine();
    const metadata = { ...ours.metadata, annotations: { ...ours.metadata.annotations, ...annotations } };
    world.told.length = 0;
    world.client.wrote(machines, { ...ours, metadata, status });
    await world.settle(() => world.pass(KEY));
    return world;
  }

  // promise: front-end-mirantis/wrong-machine-told-event
  test('what is wrong with it, once, and that it goes on', async () => {
    const world = new FrontEndWorld();
    world.client.wrote(clusterMachines, clusterMachine({ flavor: '' }));
    await world.settle(() => world.pass(KEY));
    await world.pass(KEY);

    expect(world.told).toEqual(['Warning Problem m-1: spec.providerSpec.value.flavor: must be the name of a flavor']);
    world.client.wrote(clusterMachines, clusterMachine());
    await world.settle(() => world.pass(KEY));
    expect(world.told.slice(1)).toEqual(['Normal Progress m-1: The machine is about to be created']);
  });

  test.each([
    { state: 'Processing', told: 'Normal Progress m-1: Create Processing: making the VM' },
    { state: 'Failed', told: 'Warning Problem m-1: Create Failed: making the VM' },
  ])('what is done, and whether it has failed: $state', async ({ state, told }) => {
    const world = await shown({
      lastOperation: { type: 'Create', state: state as 'Failed', description: 'making the VM' },
    });

    expect(world.told).toEqual([told]);
  });

  test('what holds up its maintenance', async () => {
    const mirrored = { type: 'Maintenance', status: 'False', reason: 'DrainFailed', message: 'pod a stays' } as const;
    const world = await shown({ conditions: [mirrored] }, { [SINCE]: '2026-01-01T00:00:00Z' });

    expect(world.told).toContain('Warning MaintenanceProblem m-1: DrainFailed: pod a stays');
    expect(world.fronts.get(KEY)?.status?.providerStatus?.conditions).toContainEqual(
      condition('Maintenance', false, 'DrainFailed: pod a stays'),
    );
  });

  test('what holds up its deletion', async () => {
    const prepared = { type: 'DeletionPrepared', status: 'False', reason: 'failed', message: 'refused' } as const;
    const world = await shown({ machineConditions: [{ ...prepared, lastTransitionTime: '' }] });

    expect(world.told).toContain('Warning DeletionProblem m-1: failed: refused');
  });
});

test('pools and Clusters tell what is wrong with them', async () => {
  const world = new FrontEndWorld();
  world.client.wrote(machinePools, machinePool({}, { replicas: -1 }));
  world.client.wrote(cloudClusters, cloudCluster({ maintenance: 'yes' }));
  await world.settle(() => world.passOfPool('default/pool-1'));
  await world.settle(() => world.passOfCluster('default/cluster-1'));

  expect(world.told).toEqual([
    'Warning Problem pool-1: spec.replicas: must be a whole number from 0 to 10000',
    'Warning Problem cluster-1: spec.providerSpec.value.maintenance: must be true or false',
  ]);
});

test('what is written beside a status that means nothing is told all the same', async () => {
  const world = new FrontEndWorld();
  const spoilt = { ...clusterMachine(), status: { providerStatus: { conditions: 'text' } } };
  world.client.wrote(clusterMachines, spoilt as never);
  world.client.put(configMaps);

  await world.settle(() => world.pass(KEY));

  expect(world.fronts.get(KEY)?.status?.providerStatus?.conditions).toHaveLength(2);
});
