import { describe, expect, test } from '@jest/globals';

import { machineDeployment, machineSet, type BuiltMachineSet } from '../../../test/builders.ts';
import { DeploymentWorld, SetWorld } from '../../../test/fakes/replicas-world.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { FREEZE_LABEL, MACHINE_FINALIZER, UNFREEZE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { machineDeploymentController } from '../machine-deployment/controller.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../operator/indexes/owner-index.ts';
import { CREATION_LIMIT_REACHED } from './creation-brake.ts';
import { machineSetController } from '../machine-set/controller.ts';
import { wakeMachineSets } from '../machine-set/wake.ts';

const signal = new AbortController().signal;
const NO_MARK = { metadata: { labels: { [FREEZE_LABEL]: null }, annotations: { [UNFREEZE_ANNOTATION]: null } } };
const AGAIN = { kind: 'requeue', afterMs: 0 };

function frozen(reason: string): { type: string; status: 'True'; reason: string } {
  return { type: 'Frozen', status: 'True', reason };
}

function deploymentFrozen(isAsked: boolean): MachineDeployment {
  return machineDeployment((d) => {
    d.metadata.finalizers = [MACHINE_FINALIZER];
    d.metadata.labels[FREEZE_LABEL] = 'True';
    if (isAsked) d.metadata.annotations[UNFREEZE_ANNOTATION] = '';
    d.status.conditions = [frozen(CREATION_LIMIT_REACHED)];
  });
}

function setOf(owner: MachineDeployment | undefined, change?: (s: BuiltMachineSet) => void): MachineSet {
  return machineSet((s) => {
    s.metadata.finalizers = [MACHINE_FINALIZER];
    if (owner !== undefined)
      s.metadata.ownerReferences = [controllerReference(owner, 'machine.sapcloud.io/v1alpha1', 'MachineDeployment')];
    change?.(s);
  });
}

/** What was written to whom, in order. */
function writesOf({ client }: SetWorld | DeploymentWorld): unknown[] {
  return client.writes.map(({ what, body }) => [what, body]);
}

function spend(brake: SetWorld['brake'], uid: string): void {
  brake.observe(uid, 1, 1);
  for (let i = 0; i < 23; i++) brake.createdMachine(uid);
  expect(brake.room(uid)).toBe(0);
}

describe('a set whose annotation asks for its release', () => {
  test.each(['OverShootingReplicaCount', CREATION_LIMIT_REACHED])(
    'is released by its own controller, whoever froze it (%s), and its count begins anew',
    async (reason) => {
      const set = setOf(undefined, (s) => {
        s.metadata.labels[FREEZE_LABEL] = 'True';
        s.metadata.annotations[UNFREEZE_ANNOTATION] = 'yes';
        s.status.machineSetCondition = [frozen(reason)] as never;
      });
      const deps = new SetWorld([set]);
      spend(deps.brake, set.metadata.uid);

      expect(await machineSetController(deps).reconcile('default/set-1', signal)).toMatchObject(AGAIN);

      expect(writesOf(deps)).toEqual([
        ['machinesets/set-1/status', { status: { machineSetCondition: null } }],
        ['machinesets/set-1', NO_MARK],
      ]);
      expect(deps.events).toEqual(['UnfrozeMachineSet']);
      expect(deps.brake.room(set.metadata.uid)).toBe(Infinity);
    },
  );

  test('although nothing has frozen it only loses the annotation', async () => {
    const deps = new SetWorld([setOf(undefined, (s) => (s.metadata.annotations[UNFREEZE_ANNOTATION] = ''))], []);

    await machineSetController(deps).reconcile('default/set-1', signal);

    expect(writesOf(deps)).toEqual([['machinesets/set-1', NO_MARK]]);
    expect(deps.events).toEqual([]);
  });
});

test('a MachineDeployment whose annotation asks for it is released by its own controller, after its frozen sets', async () => {
  const deployment = deploymentFrozen(true);
  const free = setOf(deployment);
  const held = setOf(deployment, (s) => {
    s.metadata.name = 'held';
    s.metadata.uid = 'uid-held';
    s.metadata.labels[FREEZE_LABEL] = 'True';
  });
  const deps = new DeploymentWorld(deployment, { sets: [free, held] });
  spend(deps.brake, deployment.metadata.uid);

  expect(await machineDeploymentController(deps).reconcile('default/deployment-1', signal)).toMatchObject(AGAIN);

  expect(writesOf(deps)).toEqual([
    ['machinesets/held', NO_MARK],
    ['machinedeployments/deployment-1/status', { status: { conditions: null } }],
    ['machinedeployments/deployment-1', NO_MARK],
  ]);
  expect(deps.events).toEqual(['UnfrozeMachineSet']);
  expect(deps.brake.room(deployment.metadata.uid)).toBe(Infinity);
});

describe('what created too much and lost its label to somebody', () => {
  const LABEL = { metadata: { labels: { [FREEZE_LABEL]: 'True' } } };

  test('gets it back as a set, and creates nothing meanwhile', async () => {
    const set = setOf(
      undefined,
      (s) => void (s.status.machineSetCondition = [frozen(CREATION_LIMIT_REACHED)] as never),
    );
    const deps = new SetWorld([set]);

    await machineSetController(deps).reconcile('default/set-1', signal);

    expect(deps.client.writes.map(({ verb }) => verb)).not.toContain('create');
    expect(writesOf(deps)).toContainEqual(['machinesets/set-1', LABEL]);
  });

  test('gets it back as a MachineDeployment, before anything else', async () => {
    const deployment = deploymentFrozen(false);
    delete deployment.metadata.labels?.[FREEZE_LABEL];
    const deps = new DeploymentWorld(deployment);

    await machineDeploymentController(deps).reconcile('default/deployment-1', signal);

    expect(writesOf(deps)[0]).toEqual(['machinedeployments/deployment-1', LABEL]);
  });
});

test('the sets of a MachineDeployment look again at once when it is released, not when it is frozen', () => {
  const machineSets = new MemoryInformer([setOf(machineDeployment())], { [CONTROLLER_INDEX]: controllerIndex });
  const machineDeployments = new MemoryInformer<MachineDeployment>();
  const woken: string[] = [];
  const queue = { add: (key: string) => void woken.push(key), addAfter: () => undefined };
  wakeMachineSets({ machineSets, machines: new MemoryInformer<Machine>(), machineDeployments }, queue);
  const show = (one: MachineDeployment, resourceVersion: string): void =>
    machineDeployments.put({ ...one, metadata: { ...one.metadata, resourceVersion } });

  show(machineDeployment(), '1');
  show(deploymentFrozen(false), '2');
  show(deploymentFrozen(true), '3');
  expect(woken).toEqual([]);

  show(machineDeployment(), '4');
  expect(woken).toEqual(['default/set-1']);
});
