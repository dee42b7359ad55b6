import { machine, machineDeployment, machineSet, node } from '../../test/builders.ts';
import { MINUTE } from '../../test/durations.ts';
import { FakeWorld } from '../../test/fakes/machine-world.ts';
import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import { MACHINE_FINALIZER, NODE_FINALIZER } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { ReplacementBudget } from '../../pkg/controllers/machine-facts/replacement-budget.ts';
import { controllerReference } from '../../pkg/work/reconcile/ownership.ts';
import { number, readOptions } from '../options.ts';

/**
 * What a pass over a machine costs that is not replaced yet, in an outage of a whole fleet: each has one every 10 s. The machine controller works in
 * memory, without an API server.
 */
const { machines, passes } = readOptions('Measures what machines cost whose replacement is held back.', {
  machines: number('machines, all of them unhealthy', 5_000),
  passes: number('passes that are measured', 400),
});

for (const threshold of [0.5, 1]) {
  for (const isDeleted of [false, true]) {
    const world = fleetOf(machines, threshold, isDeleted);
    const first = await measure(world);
    world.clock.advance(10_000);
    const again = await measure(world);
    const hold = world.machines.get(`default/m-${passes - 1}`)?.status?.lastOperation?.errorCode;
    console.log(
      `${hold}${isDeleted ? ', with deleted Nodes' : ''}: ${first} ms of CPU for the first pass, ${again} for each after it`,
    );
  }
}

/** Machines of one MachineDeployment, of one zone. */
function fleetOf(count: number, threshold: number, isDeleted: boolean): FakeWorld {
  const world = new FakeWorld();
  world.settings.zoneUnhealthyThreshold = threshold;
  const { owners } = world;
  const deployment = machineDeployment();
  const set = machineSet((s) => {
    s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
  });
  owners.deployments.put(deployment);
  owners.sets.put(set);
  for (let i = 0; i < count; i++) {
    const name = `m-${i}`;
    const ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    world.machines.put(
      machine((m) => {
        Object.assign(m.metadata, { name, uid: name, ownerReferences, finalizers: [MACHINE_FINALIZER] });
        m.metadata.labels['node'] = name;
        m.spec.providerID = `sim:///${name}`;
        m.status.currentStatus.phase = 'Unknown';
      }),
    );
    world.nodes.cache.put(
      node((n) => {
        Object.assign(n.metadata, { name, uid: `node-${name}`, finalizers: [NODE_FINALIZER] });
        n.spec.providerID = `sim:///${name}`;
        n.status.conditions = [{ type: 'Ready', status: 'Unknown' }];
        if (isDeleted) n.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      }),
    );
  }
  world.nodes.ofMachine = ({ metadata }) => [world.nodes.get(metadata.name)].filter((one) => one !== undefined);
  Object.assign(world, { budget: new ReplacementBudget(world) });
  world.restart();
  world.clock.advance(15 * MINUTE);
  return world;
}

/** Milliseconds of CPU of each pass. */
async function measure(world: FakeWorld): Promise<string> {
  const before = process.cpuUsage();
  for (let i = 0; i < passes; i++) await world.reconcile(`default/m-${i}`);
  const { user, system } = process.cpuUsage(before);
  return ((user + system) / 1_000 / passes).toFixed(2);
}
