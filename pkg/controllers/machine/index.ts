import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import { controllerOf, keyOf } from '../../apis/meta.ts';
import type { Config } from '../../operator/config/config.ts';
import { ActivityRegistry } from '../../work/activity/registry.ts';
import { isDeletedByForce } from '../../driver/concerned-clusters.ts';
import { eventsAbout } from '../../kube/events/event-sink.ts';
import { machines as machineResource } from '../../kube/client/resource.ts';
import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import { machineMetrics } from './metrics.ts';
import { replacementMetrics } from './replacement-metrics.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { endWithResults } from '../../work/reconcile/last-results.ts';
import { MACHINE_EVENT_SOURCE } from '../machine-facts/events.ts';
import { machinesNamed } from '../machine-facts/namesakes.ts';
import { nodeAccess, type NodeAccess } from '../machine-facts/node-access.ts';
import { HOLD_KINDS, holdOf } from '../machine-facts/replacement-hold.ts';
import type { VMStates } from '../machine-facts/vm-states.ts';
import type { ActivityResults } from './calls/results.ts';
import type { MachineStepsDeps } from './collaborators.ts';
import { MachineController } from './controller.ts';
import { machineAccess } from './machine-access.ts';
import { machineSteps } from './steps.ts';
import { BootstrapTokens } from './tokens/bootstrap-tokens.ts';
import type { LeftVMs } from './deletion/forced-removal.ts';
import { poolMetrics } from './pool-metrics.ts';
import { waitMetrics } from './wait-metrics.ts';
import { workInProgress } from './work-in-progress.ts';
import {
  wakeMachines,
  wakeMachinesByPolicy,
  wakeMachinesOfClasses,
  wakeMachinesOfOrphans,
  wakeNamesakes,
} from './wake.ts';

/** How many of each kind of long work run at once. Drains have their own place, so that they never hold up the rest. */
const ACTIVITY_LIMITS = { create: 200, initialize: 200, status: 200, delete: 200, drain: 1_000 };

/** Makes a VM of each Machine, looks after it, and deletes it. `share` is what other controllers have a part in. */
export function machine(
  operator: Operator,
  share: Pick<
    MachineStepsDeps,
    'secrets' | 'zones' | 'nodesInTarget' | 'budget' | 'pace' | 'owners' | 'drivers' | 'drain' | 'rules' | 'judgedVM'
  > & { readonly vmStates: VMStates },
): Controller {
  const { clock, log, registry, metrics, config, reader } = operator;
  const { machines, machineSets, classes, labelPolicies } = operator.caches;
  const { writer, targets, gate } = operator.under(MACHINE_LEASE);
  const limits = ACTIVITY_LIMITS;
  const activities = new ActivityRegistry<ActivityResults>({ clock, log, metrics: metrics.activity, limits });
  const recorder = eventsAbout(machineResource, operator.recorder(MACHINE_EVENT_SOURCE));
  const { random } = operator;
  const outages = () => operator.outages;
  const steps = machineSteps({
    ...share,
    ...machineAccess({ reader, writer, targets, clock }),
    machines,
    classes,
    labelPolicies,
    targets,
    activities,
    bootstrapTokens: new BootstrapTokens({ clock, random, extraGroups: config.machine.bootstrapTokenExtraGroups }),
    gate,
    trust: gate,
    outages,
    metrics: machineMetrics(registry, machines),
    clock,
    random,
    settings: config.machine,
    leftVMs: leftVMsUnder(config),
    identities: operator.sharedTarget?.identities,
    namesakes: operator.sharedTarget && ((name, signal) => machinesNamed(name, reader, signal)),
    // Nobody else would take it away again.
    holdsScaleDownDuringRollout: config.controllers.has('machine-deployment') && config.sets.annotateForAutoscaler,
  });
  const nodesOf = (one: Machine): NodeAccess | undefined => {
    const target = targets.of(one);
    return target && nodeAccess(target, machines);
  };
  const isOurs = ({ metadata }: Machine): boolean => metadata.namespace === config.clusters.namespace;
  const controller = new MachineController({
    steps,
    machines,
    nodesOf,
    activities,
    outages,
    writer,
    recorder,
    clock,
    random,
  });
  replacementMetrics(
    registry,
    {
      held: () => machines.list().flatMap((one) => holdOf(one)?.kind ?? []),
      zones: () => share.zones.states(),
    },
    HOLD_KINDS,
  );
  poolMetrics(registry, { machines, machineSets, clock });
  waitMetrics(registry, { steps, classes, clock });
  operator.showWork(() => workInProgress({ steps, activities, machines, classes, clock, nodesOf }));
  const nodes = targets.all().map((target) => target.nodes);
  return {
    name: 'machine',
    queue: 'machine',
    lease: MACHINE_LEASE,
    concurrency: config.machine.concurrency,
    reconcile: (key, signal, passLog) => controller.reconcile(key, signal, passLog),
    // A rollout of thousands must not hold up the one machine that another MachineDeployment needs.
    groupOf: (key) => ownerUIDOf(machines.get(key)),
    // Once the target answers, its Node may be looked for, which takes caches that have caught up.
    requiresTarget: (key) => !(isDeletedByForce(machines.get(key)) && operator.hasTargetOutage),
    watches: [
      (queue) =>
        share.vmStates.onChange((providerIDs) => {
          for (const one of providerIDs.flatMap((id) => machines.byIndex('providerID', id)))
            if (isOurs(one)) queue.add(keyOf(one));
        }),
      (queue) => wakeMachinesOfClasses(operator.caches, queue),
      (queue) => wakeMachinesByPolicy(operator.caches, queue),
      (queue) => wakeMachinesOfOrphans(operator.caches, queue),
      (queue) => wakeMachines({ machines, nodes, queue, activities, controller, isOurs }),
      (queue) => wakeNamesakes(machines, operator.sharedTarget?.machines, queue),
    ],
    end: (queue, graceMs) => endWithResults(activities, queue, { clock, graceMs }),
  };
}

function ownerUIDOf(one: Machine | undefined): string {
  return (one && controllerOf(one)?.uid) ?? '';
}

function leftVMsUnder({ controllers, safety }: Config): LeftVMs {
  if (!controllers.has('safety.orphan-vms')) return 'not-looked-for';
  return safety.orphanVMsDryRun ? 'reported' : 'deleted';
}
