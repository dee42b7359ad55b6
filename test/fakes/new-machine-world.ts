import { MACHINE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { machine, machineClass, secret } from '../builders.ts';
import { FakeWorld } from './machine-world.ts';

/** What is otherwise in that world. */
interface Otherwise {
  readonly machine?: (m: ReturnType<typeof machine>) => void;
  readonly machineClass?: (c: ReturnType<typeof machineClass>) => void;
  readonly userData?: string;
}

/** A world with a new Machine of a protected class that has user data, at a provider without a VM. */
export function newMachineWorld(otherwise: Otherwise = {}): FakeWorld {
  const world = new FakeWorld();
  world.driver.notFound = () => new DriverError('NotFound', 'no VM');
  world.classes.put(
    machineClass((c) => {
      c.metadata.finalizers = [MACHINE_FINALIZER];
      otherwise.machineClass?.(c);
    }),
  );
  const userData = Buffer.from(otherwise.userData ?? 'x').toString('base64');
  world.secrets.put(secret((s) => Object.assign(s.data, { userData })));
  world.machines.put(
    machine((m) => {
      m.metadata.finalizers = [MACHINE_FINALIZER];
      m.metadata.labels = {};
      m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
      m.status = {} as (typeof m)['status'];
      otherwise.machine?.(m);
    }),
  );
  return world;
}
