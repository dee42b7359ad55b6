import { describe, expect, test } from '@jest/globals';

import { BROKEN_OBJECTS } from '../../test/broken-objects.ts';
import { machine, machineDeployment, machineSet } from '../../test/builders.ts';
import { ReplicasWorld } from '../../test/fakes/replicas-world.ts';
import { membershipOf, nodeGroup } from '../../test/node-group.ts';
import { API_VERSION } from '../apis/machine/v1alpha1/group.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../apis/machine/v1alpha1/machine-set.ts';
import { observeDeployment } from '../controllers/machine-deployment/observed.ts';
import { controllerReference } from '../work/reconcile/ownership.ts';
import { CloudProvider } from './cloud-provider.ts';
import { NodeGroups } from './groups.ts';
import { LearnedShapes } from './learned.ts';
import { owedBy } from './mutations/group-state.ts';
import { mutations } from './mutations/index.ts';
import { Places } from './places.ts';
import { RunningChanges } from './running-changes.ts';
import { ServerError } from 'nice-grpc';

const call = { peer: 'x', signal: new AbortController().signal, leftMs: () => Infinity, report: () => undefined };

const broken = (kind: string) => BROKEN_OBJECTS.filter(({ object }) => object.kind === kind);

/** What is asked about a group of this MachineDeployment, with one MachineSet and one Machine. */
function asked(
  deployment: MachineDeployment,
  member: Machine,
  of: MachineSet = machineSet(),
): readonly (() => unknown)[] {
  const controller = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
  const set = { ...of, metadata: { ...of.metadata, ownerReferences: controller } };
  const owner = [controllerReference(set, API_VERSION, 'MachineSet')];
  const owned = { ...member, metadata: { ...member.metadata, ownerReferences: owner } };
  const deps = new ReplicasWorld({ deployments: [deployment], sets: [set], machines: [owned] });
  const membership = membershipOf(deps);
  const { machineDeployments, machineSets, machines, reader, writer, targets, clock } = deps;
  const seen = { machineDeployments, machineSets, machines, reader, writer, targets, clock };
  const { name } = deployment.metadata;
  const places = new Places('x');
  const provider = new CloudProvider({
    groups: new NodeGroups({
      deployments: machineDeployments,
      namespace: 'default',
      listed: new Map([[name, nodeGroup()]]),
    }),
    membership,
    machineDeployments,
    machineClasses: { get: () => undefined, hasSynced: true },
    learned: new LearnedShapes(),
    announced: () => Promise.resolve(undefined),
    mutations: mutations({
      ...seen,
      membership,
      places,
      recorder: { event: () => undefined },
      changes: new RunningChanges(),
    }),
    places,
    owed: (one) => owedBy(seen, observeDeployment(seen, one)),
    catchUp: () => Promise.resolve(),
    gpu: { gpuLabel: '', gpuTypes: [] },
    clock,
    trust: { blindMs: () => 0, graceLeftMs: () => 0 },
    clusters: [],
  });
  const node = { providerId: '', name: member.metadata.name, labels: {}, annotations: {} };
  return [
    () => provider.sizes(),
    () => provider.nodeGroups(),
    () => provider.nodeGroupForNode({ node }),
    () => provider.nodeGroupTargetSize({ id: name }),
    () => provider.nodeGroupNodes({ id: name }),
    () => provider.nodeGroupTemplateNodeInfo({ id: name }, call),
    () => provider.nodeGroupGetOptions({ id: name, defaults: undefined }),
    () => provider.nodeGroupIncreaseSize({ id: name, delta: 1 }, call),
    () => provider.nodeGroupDeleteNodes({ id: name, nodes: [node] }, call),
    () => provider.nodeGroupDecreaseTargetSize({ id: name, delta: -1 }, call),
  ];
}

/** Errors that tell the client nothing: one of them about one group ends its loop for all. */
async function faults(questions: readonly (() => unknown)[]): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  for (const question of questions) {
    try {
      await question();
    } catch (err) {
      if (!(err instanceof ServerError)) errors.push(err);
    }
  }
  return errors;
}

describe('an autoscaler gets an answer about what the CRDs of the original store', () => {
  test.each(broken('MachineDeployment'))('a MachineDeployment: $what', async ({ object }) => {
    expect(await faults(asked(object as MachineDeployment, machine()))).toEqual([]);
  });

  test.each(broken('MachineSet'))('a MachineSet: $what', async ({ object }) => {
    expect(await faults(asked(machineDeployment(), machine(), object as MachineSet))).toEqual([]);
  });

  test.each(broken('Machine'))('a Machine: $what', async ({ object }) => {
    expect(await faults(asked(machineDeployment(), object as Machine))).toEqual([]);
  });
});
