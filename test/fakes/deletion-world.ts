import { DriverError } from '../../pkg/driver/error.ts';
import { machine, machineClass, secret } from '../builders.ts';
import { FakeWorld } from './machine-world.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';

/** A world with Machine m-1 whose deletion was asked for a moment ago, its class and its VM. It has no Node. */
export function worldInDeletion(change: (m: ReturnType<typeof machine>) => void = () => undefined): FakeWorld {
  const world = new FakeWorld();
  world.driver.notFound = () => new DriverError('NotFound', 'no VM');
  world.driver.vms.set('m-1', { providerID: 'sim:///m-1', nodeName: 'm-1', addresses: [] });
  world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
  world.secrets.put(secret());
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [FINALIZER];
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      m.status.conditions = [{ type: 'Ready', status: 'True' }];
      change(m);
    }),
  );
  return world;
}

/** Passes until nothing moves, or Machine m-1 is gone. */
export async function runToEnd(world: FakeWorld): Promise<void> {
  for (let i = 0; i < 20 && world.machines.get('default/m-1') !== undefined; i++) {
    await world.reconcile();
    await world.settle();
  }
}
