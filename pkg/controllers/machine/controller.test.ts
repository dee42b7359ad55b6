import { expect, test } from '@jest/globals';

import { machine, machineClass } from '../../../test/builders.ts';
import { FakeWorld } from '../../../test/fakes/machine-world.ts';
import type { Writer } from '../../kube/client.ts';
import { silentLogger } from '../../log/logger.ts';
import { DriverError } from '../../driver/error.ts';
import { singleTarget } from '../../targets/single-target.ts';
import { MachineController } from './controller.ts';

const FINALIZER = 'machine.sapcloud.io/machine-controller-manager';
const KEY = 'default/m-1';

test('what a pass starts for a Machine that vanishes meanwhile is not remembered forever', async () => {
  const world = new FakeWorld();
  world.driver.notFound = () => new DriverError('NotFound', 'no VM');
  world.classes.put(machineClass((c) => Object.assign(c.metadata, { finalizers: [FINALIZER] })));
  const observed = machine((m) => {
    m.metadata.finalizers = [FINALIZER];
    m.spec = { class: { kind: 'MachineClass', name: 'class-1' } };
    m.status = {} as (typeof m)['status'];
  });
  world.machines.put(observed);
  const { uid } = observed.metadata;
  const controller = new MachineController({
    ...world.deps,
    targets: singleTarget(undefined),
    recorder: { event: () => undefined },
    writer: {} as Writer, // a pass that only starts work writes nothing
    reader: { get: () => Promise.reject(new Error('not read')), list: () => Promise.reject(new Error('not read')) },
    secrets: {
      of: () => {
        // Its finalizers were taken away by hand; the watch tells while the pass is on its way.
        world.machines.remove(KEY);
        controller.forget(observed);
        world.activities.forgetAll(KEY);
        return Promise.resolve({ data: { userData: Buffer.from('x') }, missing: [], fingerprint: '' });
      },
    },
  });

  const { promise, resolve } = Promise.withResolvers<void>();
  world.driver.hold = promise;

  await controller.reconcile(KEY, new AbortController().signal, silentLogger);
  expect(world.activities.get(uid, 'create')).toMatchObject({ state: 'running' });
  resolve();
  await world.settle();

  expect(world.activities.get(uid, 'create')).toBeUndefined();
  expect(world.driver.calls).toEqual(['status']);
});
