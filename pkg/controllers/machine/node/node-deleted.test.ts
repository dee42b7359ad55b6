import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../../test/builders.ts';
import { MINUTE, SECOND } from '../../../../test/durations.ts';
import { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import {
  MACHINE_FINALIZER,
  MACHINE_NAME_LABEL,
  MAINTENANCE_ANNOTATION,
  NODE_FINALIZER,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import { explain } from '../explain/explain.ts';

const DELETED = ['uid-of-machine-m-1'];
const READY = { type: 'Ready', status: 'True' };
const SILENT = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' };

const current = (world: FakeWorld): Machine => world.machines.get('default/m-1') as Machine;
const phaseNow = (world: FakeWorld): string | undefined => current(world).status?.currentStatus?.phase;

/** A machine of a zone with others, whose Node is being deleted. */
class DeletedNode {
  readonly world = new FakeWorld();
  #version = 1;

  constructor(phase: MachinePhase, { isInMaintenance = false } = {}) {
    this.put('m-1', phase, isInMaintenance);
    this.say(SILENT);
  }

  put(name: string, phase: MachinePhase, isInMaintenance = false): void {
    this.world.machines.put(
      machine((m) => {
        m.metadata.name = name;
        m.metadata.resourceVersion = String(500 + this.#version++);
        m.metadata.finalizers = [MACHINE_FINALIZER];
        m.metadata.annotations = { 'machinepriority.machine.sapcloud.io': '3' };
        if (isInMaintenance) m.metadata.annotations[MAINTENANCE_ANNOTATION] = 'true';
        m.status.currentStatus = { phase, lastUpdateTime: '2026-01-01T00:00:00Z' };
        m.status.conditions = [READY];
      }),
    );
  }

  say(condition: { type: string; status: string }): void {
    this.world.nodes.cache.put(
      node((n) => {
        n.metadata.resourceVersion = String(500 + this.#version++);
        n.metadata.finalizers = [NODE_FINALIZER];
        n.metadata.labels[MACHINE_NAME_LABEL] = 'm-1';
        n.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
        n.status.conditions = [condition];
      }),
    );
  }
}

describe('a deleted Node that is not ready', () => {
  test('takes its machine along when the others of its zone are well, not before they could be found unhealthy', async () => {
    const { world } = new DeletedNode('Running');
    const first = await world.reconcile();
    expect([phaseNow(world), world.deletedMachines]).toEqual(['Unknown', []]);
    expect(first.result).toMatchObject({ kind: 'requeue' });

    world.clock.advance(MINUTE - SECOND);
    const { result } = await world.reconcile();
    expect(world.deletedMachines).toEqual([]);
    expect(result).toMatchObject({ kind: 'requeue', afterMs: SECOND });

    world.clock.advance(SECOND);
    await world.reconcile();
    expect(world.deletedMachines).toEqual(DELETED);
  });

  test('keeps its machine while its zone is stopped, and says so once; then it takes it along', async () => {
    const silent = new DeletedNode('Running');
    const { world } = silent;
    for (const [name, phase] of Object.entries({ a: 'Unknown', b: 'Running', c: 'Running' } as const))
      silent.put(name, phase);
    const told: string[] = [];
    for (let i = 0; i < 4; i++) {
      const { events } = await world.reconcile();
      told.push(...events.map(({ reason, message }) => `${reason}: ${message}`));
      world.clock.advance(MINUTE);
    }

    expect([phaseNow(world), world.deletedMachines]).toEqual(['Unknown', []]);
    expect(explain(current(world), 0)).toMatchObject({ reason: 'ZoneUnhealthy' });
    const held = told.filter((one) => one.startsWith('ReplacementDelayed'));
    expect(held).toHaveLength(2);
    expect(held[0]).toContain('Not replaced yet: ');
    expect(held[1]).toMatch(
      /Node m-1 was deleted while it was not ready\. The Machine is kept for now: .* delete a Machine/,
    );

    silent.put('a', 'Running');
    await world.reconcile();
    expect(world.deletedMachines).toEqual(DELETED);
  });

  test('that becomes ready in a stopped zone takes its machine along', async () => {
    const silent = new DeletedNode('Unknown');
    const { world } = silent;
    for (const name of ['a', 'b']) silent.put(name, 'Unknown');
    world.clock.advance(MINUTE);
    await world.reconcile();
    expect(world.deletedMachines).toEqual([]);

    silent.say(READY);
    await world.reconcile();

    expect(world.deletedMachines).toEqual(DELETED);
  });

  test('keeps a machine that is in maintenance', async () => {
    const { world } = new DeletedNode('Unknown', { isInMaintenance: true });
    world.clock.advance(10 * MINUTE);

    const { events } = await world.reconcile();

    expect(world.deletedMachines).toEqual([]);
    expect(events.map(({ message }) => message)).toContain(
      'Node m-1 was deleted while it was not ready. The Machine is kept for now: it is in maintenance; end the maintenance, or delete the Machine.',
    );
  });

  test.each(['Pending', 'Failed'] as const)('takes a machine that is %s along at once', async (phase) => {
    const silent = new DeletedNode(phase);
    for (const name of ['a', 'b', 'c']) silent.put(name, 'Unknown');

    await silent.world.reconcile();

    expect(silent.world.deletedMachines).toEqual(DELETED);
  });
});
