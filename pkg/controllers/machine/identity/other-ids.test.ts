import { describe, expect, test } from '@jest/globals';

import { MINUTE } from '../../../../test/durations.ts';
import { machine, machineClass, node, secret } from '../../../../test/builders.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { MACHINE_NAME_LABEL, NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const READY = { type: 'Ready', status: 'True' };

/** Ids of one VM: as its driver reports it, as its Node shows it, and of another VM of that cloud. */
const FORMS = [
  {
    cloud: 'AWS',
    driver: 'aws:///eu-west-1/i-0abc',
    shown: 'aws:///eu-west-1a/i-0abc',
    other: 'aws:///eu-west-1/i-0def',
  },
  {
    cloud: 'Azure',
    driver: 'azure:///westeurope/vm-1',
    shown: 'azure:///subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/VM-1',
    other: 'azure:///westeurope/vm-10',
  },
  {
    cloud: 'GCP',
    driver: 'gce:///project/zone-a/vm-1',
    shown: 'gce://project/zone-a/vm-1',
    other: 'gce:///project/zone-a/vm-2',
  },
] as const;

interface Scene {
  /** Of machine m-1. */
  readonly driver: string;
  /** On Node n-1, which names no machine. */
  readonly shown: string;
  /** Of m-0, which is older and says that Node n-1 is its. */
  readonly other: string;
  readonly change?: (m: ReturnType<typeof machine>) => void;
}

/** Two machines that name one Node: without an id that both understand, the older one has it. */
function start({ driver, shown, other, change = () => undefined }: Scene): FakeWorld {
  const world = new FakeWorld();
  world.classes.put(machineClass());
  world.secrets.put(secret());
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [FINALIZER];
      m.metadata.labels[NODE_LABEL] = 'n-1';
      m.metadata.annotations = { 'machinepriority.machine.sapcloud.io': '3' };
      m.spec.providerID = driver;
      m.spec.nodeTemplate = { metadata: { labels: { asked: 'for' } } };
      m.status.conditions = [READY];
      change(m);
    }),
  );
  world.machines.put(
    machine((m) => {
      m.metadata.name = 'm-0';
      m.metadata.creationTimestamp = '2025-01-01T00:00:00Z';
      m.metadata.labels[NODE_LABEL] = 'n-1';
      m.spec.providerID = other;
    }),
  );
  world.nodes.cache.put(
    node((n) => {
      n.metadata.name = 'n-1';
      n.spec.providerID = shown;
      n.status.conditions = [READY];
    }),
  );
  world.nodes.keepsPatches = true;
  return world;
}

const current = (world: FakeWorld, name: string): Machine | undefined => world.machines.get(`default/${name}`);
const phaseOf = (world: FakeWorld, name: string): string | undefined =>
  current(world, name)?.status?.currentStatus?.phase;
const labelsOf = (world: FakeWorld): Readonly<Record<string, string>> => world.nodes.get('n-1')?.metadata.labels ?? {};

describe.each(FORMS)('a Node that shows its VM as $shown, which the driver for $cloud reports as $driver', (ids) => {
  test('keeps its machine Running, and makes no other so', async () => {
    const world = start(ids);
    world.machines.put(
      machine((m) => {
        Object.assign(m, current(world, 'm-0'));
        m.metadata = { ...m.metadata, resourceVersion: '2' };
        m.status.currentStatus.phase = 'Pending';
      }),
    );

    await world.reconcile();
    await world.reconcile('default/m-0');

    expect([phaseOf(world, 'm-1'), phaseOf(world, 'm-0')]).toEqual(['Running', 'Pending']);
  });

  test('makes its machine Unknown when it is not well, and saves it from its timeout by a live look', async () => {
    const world = start(ids);
    const well = world.nodes.get('n-1');
    world.nodes.cache.put(
      node((n) => {
        Object.assign(n, well);
        n.metadata = { ...n.metadata, resourceVersion: '2' };
        n.status = { ...n.status, conditions: [{ type: 'Ready', status: 'Unknown' }] };
      }),
    );
    await world.reconcile();
    expect(phaseOf(world, 'm-1')).toBe('Unknown');

    world.clock.advance(10 * MINUTE);
    world.nodes.live.set('n-1', well);
    const { events } = await world.reconcile();

    expect(phaseOf(world, 'm-1')).toBe('Unknown');
    expect(events).toEqual([]);
  });

  test("gets its machine's name, finalizer and template, and nothing of another machine that names it", async () => {
    const world = start(ids);

    await world.reconcile('default/m-0');
    expect(world.nodes.patches).toEqual([]);
    await world.reconcile();

    expect(labelsOf(world)).toMatchObject({ [MACHINE_NAME_LABEL]: 'm-1', asked: 'for' });
  });

  test('is named by its machine again when somebody has changed the label', async () => {
    const world = start({ ...ids, change: (m) => void (m.metadata.labels[NODE_LABEL] = 'nowhere') });
    world.nodes.cache.put(
      node((n) => {
        Object.assign(n, world.nodes.get('n-1'));
        n.metadata = { ...n.metadata, resourceVersion: '2', labels: { [MACHINE_NAME_LABEL]: 'm-1' } };
      }),
    );

    const { events } = await world.reconcile();

    expect(current(world, 'm-1')?.metadata.labels?.[NODE_LABEL]).toBe('n-1');
    expect(events.map(({ reason }) => reason)).toEqual(['NodeLabelCorrected']);
    expect(phaseOf(world, 'm-1')).toBe('Running');
  });

  test.each([
    { whose: 'its own', name: 'm-1', goes: true },
    { whose: 'another', name: 'm-0', goes: false },
  ])('is drained and deleted with $whose machine: $goes', async ({ name, goes }) => {
    const world = start(ids);
    world.machines.put(
      machine((m) => {
        Object.assign(m, current(world, name));
        m.metadata = { ...m.metadata, resourceVersion: '2', finalizers: [FINALIZER] };
        m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      }),
    );
    world.driver.vms.set(name, {
      providerID: current(world, name)?.spec.providerID ?? '',
      nodeName: 'n-1',
      addresses: [],
    });

    for (let i = 0; i < 12 && current(world, name) !== undefined; i++) {
      await world.reconcile(`default/${name}`);
      world.drains.end({ kind: 'drained' });
      await world.settle();
    }

    expect(current(world, name)).toBeUndefined();
    expect(world.drains.requests.map((request) => request.nodeName)).toEqual(goes ? ['n-1'] : []);
    expect(world.nodes.get('n-1') === undefined).toBe(goes);
  });
});
