import { describe, expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { SetWorld } from '../../../test/fakes/replicas-world.ts';
import { MACHINE_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { MINUTE_MS } from '../../base/clock/clock.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { machines } from '../../kube/client/resource.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { settleWhenObserved, unseenCreations } from './unseen-creations.ts';

const SET = machineSet();
const { uid } = SET.metadata;
const signal = new AbortController().signal;
const asked = machine((m) => {
  m.metadata.name = 'asked';
  m.metadata.ownerReferences = [controllerReference(SET, 'machine.sapcloud.io/v1alpha1', 'MachineSet')];
});

function depsOf(): SetWorld {
  const deps = new SetWorld([SET]);
  deps.expectations.expect(uid, 'asked');
  return deps;
}

describe('a Machine that was asked for and that no cache shows', () => {
  test('is waited for, and nobody asks', async () => {
    const deps = depsOf();

    expect(await unseenCreations(deps, SET, signal)).toEqual(['asked']);
    expect(deps.client.reads).toEqual([]);
  });

  test.each([
    { what: 'that is there is shown from then on', found: [asked] },
    { what: 'that is not there is forgotten', found: [] },
  ])('and after minutes is looked for: one $what', async ({ found }) => {
    const deps = depsOf();
    deps.client.put(machines, ...found);
    deps.clock.advance(10 * MINUTE_MS);

    expect(await unseenCreations(deps, SET, signal)).toEqual([]);

    expect(deps.machines.list()).toEqual(found);
    expect(deps.expectations.names(uid)).toEqual([]);
    expect(deps.client.reads).toEqual(['machines/asked']);
  });

  test('stays waited for when nobody can say', async () => {
    const deps = depsOf();
    deps.client.readFailure = new ApiError(0, 'Unreachable', 'no answer');
    deps.clock.advance(10 * MINUTE_MS);

    await expect(unseenCreations(deps, SET, signal)).rejects.toThrow('no answer');

    expect(deps.expectations.names(uid)).toEqual(['asked']);
  });

  test('is decided after minutes also when its set wants none any more: it takes room from others until then', async () => {
    const deps = new SetWorld([
      machineSet((set) => {
        set.spec.replicas = 0;
        set.metadata.finalizers = [MACHINE_FINALIZER];
      }),
    ]);
    deps.expectations.expect(uid, 'asked');

    const first = await deps.reconcile();
    deps.clock.advance(5 * MINUTE_MS);
    await deps.reconcile();

    expect(first).toMatchObject({ kind: 'requeue', afterMs: 5_000 });
    expect(deps.expectations.names(uid)).toEqual([]);
  });

  test('is no longer when it was seen, however briefly', () => {
    const deps = depsOf();
    settleWhenObserved(deps);
    deps.machines.put(asked);
    deps.machines.remove('default/asked');

    expect(deps.expectations.names(uid)).toEqual([]);
  });
});
