import { describe, expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import { runToEnd, worldInDeletion } from '../../../../test/fakes/deletion-world.ts';
import type { FakeWorld } from '../../../../test/fakes/machine-world.ts';
import { CORDON } from '../../../../test/fakes/nodes.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { DriverError } from '../../../driver/error.ts';

const DELETED = '2026-01-01T00:00:00Z';
const LATER = '2026-01-01T00:00:01Z';

/** Machine m-1, deleted at DELETED, whose VM is being deleted when its Node registers. */
function whenItsVMIsDeleted(
  creationTimestamp: string,
  change: (n: ReturnType<typeof node>) => void = () => undefined,
): FakeWorld {
  const world = worldInDeletion((m) => {
    m.metadata.labels['node'] = 'm-1';
    m.status.currentStatus.phase = 'Terminating';
    m.status.lastOperation = { type: 'Delete', state: 'Processing', description: 'Initiate VM deletion' };
  });
  world.driver.failures['delete'] = [new DriverError('Internal', 'try again')];
  world.nodes.keepsPatches = true;
  world.nodes.cache.put(
    node((n) => {
      n.metadata.creationTimestamp = creationTimestamp;
      change(n);
    }),
  );
  return world;
}

describe('a Node whose VM is being deleted', () => {
  test('is cordoned once if it registered after the deletion was requested', async () => {
    const world = whenItsVMIsDeleted(LATER);

    for (let i = 0; i < 3; i++) await world.reconcile();

    expect(world.nodes.patches).toEqual([CORDON]);
  });

  test.each<[string, string, (n: ReturnType<typeof node>) => void]>([
    ['it was there before: a drain has seen it, or its policy has none', DELETED, () => undefined],
    ['it is cordoned', LATER, (n) => Object.assign(n.spec, { unschedulable: true })],
    ['it is not known to be that of this machine', LATER, (n) => Object.assign(n.spec, { providerID: 'sim:///other' })],
  ])('is not cordoned here if %s', async (_why, creationTimestamp, change) => {
    const world = whenItsVMIsDeleted(creationTimestamp, change);

    await world.reconcile();

    expect(world.nodes.patches).not.toContainEqual(CORDON);
  });

  test('goes with it also if it cannot be cordoned', async () => {
    const world = whenItsVMIsDeleted(LATER);
    world.driver.failures['delete'] = [];
    world.nodes.patch = () => Promise.reject(new ApiError(422, 'Invalid', 'refused'));

    await runToEnd(world);

    expect(world.machines.get('default/m-1')).toBeUndefined();
  });
});
