import { type BuiltMachine, node } from '../builders.ts';
import type { FakeWorld, PassSeen } from './machine-world.ts';
import { newMachineWorld } from './new-machine-world.ts';

/** A world with a class that is ready for use and one new machine. */
export const newMachine = (change?: (m: BuiltMachine) => void): FakeWorld =>
  newMachineWorld({
    userData: 'token: <<BOOTSTRAP_TOKEN>> name: <<MACHINE_NAME>>',
    ...(change && { machine: change }),
  });

/** Passes until nothing moves without an event from outside. */
export async function runUntilStill(world: FakeWorld): Promise<PassSeen> {
  let seen = await world.reconcile();
  for (let i = 0; i < 20; i++) {
    await world.settle();
    const before = world.machines.get('default/m-1');
    const calls = world.driver.calls.length;
    seen = await world.reconcile();
    if (world.machines.get('default/m-1') === before && world.driver.calls.length === calls) break;
  }
  return seen;
}

/** The Node joins as a kubelet would make it. */
export function joinNode(world: FakeWorld, change: (n: ReturnType<typeof node>) => void = () => undefined): void {
  world.nodes.cache.put(node(change));
}
