import type { KubeObject } from '../apis/meta.ts';
import type { Informer } from '../cache/lister.ts';
import { IRONCORE_SCHEDULER_LEASE, MACHINE_LEASE, MANAGER_LEASE } from '../leader/names.ts';
import type { Operator } from '../operator/operator.ts';
import { CLUSTER_API_KINDS } from '../worlds/cluster-api/kinds.ts';
import type { Controller } from '../reconcile/controller.ts';
import { createDrainer } from '../drain/drainer.ts';
import { createKeptVolumes } from '../drain/kept-volumes.ts';
import { DrainLimits } from '../drain/limits.ts';
import type { PodSource } from '../drain/node-pods.ts';
import type { Target } from '../targets/targets.ts';
import { SecretContents } from './class-secrets/secret-contents.ts';
import { clusterAPI } from './cluster-api/index.ts';
import { ironCoreLifecycle, ironCoreScheduler, ironCoreServing } from './ironcore/index.ts';
import { machineClass } from './machine-class/index.ts';
import { machineDeployment } from './machine-deployment/index.ts';
import { machineSet } from './machine-set/index.ts';
import { machine } from './machine/index.ts';
import { mirantis } from './mirantis/index.ts';
import { DrainRules, obeying, type DrainRulesDeps } from './machines/drain-rules.ts';
import type { Owners } from './machines/owners.ts';
import { ReplacementBudget } from './machines/replacement-budget.ts';
import { ReplacementPace } from './machines/pace.ts';
import { VMStates } from './machines/vm-states.ts';
import { CreationBrake } from './replicas/creation-brake.ts';
import { ownerDeps } from './replicas/owner-deps.ts';
import { RemovedMachines } from './safety/removed-machines.ts';
import { LateVMs } from './vms/late-vms.ts';
import { DeletedMachines } from './safety/deleted-machines.ts';
import { notingCalls } from './safety/noted-calls.ts';
import { orphanVMs } from './safety/orphan-vms/index.ts';
import { overshoot } from './safety/overshoot/index.ts';
import { OwnerlessVMs } from './safety/ownerless-vms.ts';
import { unmanagedNodes } from './safety/unmanaged-nodes/index.ts';
import { roleBinding } from './role-binding/index.ts';
import { secret } from './secret/index.ts';

/** All controllers of the Leases that the process applies for. */
export function controllers(operator: Operator): Controller[] {
  const ownerless = new OwnerlessVMs();
  return [
    ...(operator.config.leases.has(MANAGER_LEASE) ? ownerControllers(operator, ownerless) : []),
    ...(operator.config.leases.has(MACHINE_LEASE) ? machineControllers(operator, ownerless) : []),
    ...(operator.config.leases.has(IRONCORE_SCHEDULER_LEASE) ? [ironCoreScheduler(operator)] : []),
    ...(operator.config.controllers.has('ironcore.lifecycle') ? [ironCoreLifecycle(operator)] : []),
    ...(operator.config.controllers.has('ironcore.pools') ? ironCoreServing(operator) : []),
  ];
}

/** MachineDeployments and MachineSets. */
function ownerControllers(operator: Operator, ownerless: OwnerlessVMs): Controller[] {
  const deps = ownerDeps(operator, new CreationBrake(operator));
  return [
    machineSet(operator, deps),
    machineDeployment(operator, deps),
    overshoot(operator, deps, ownerless),
    ...(operator.config.controllers.has('mirantis') ? [mirantis(operator)] : []),
  ];
}

/** Machines, MachineClasses and Secrets. */
function machineControllers(operator: Operator, ownerless: OwnerlessVMs): Controller[] {
  const { clock, log, reader, caches, config } = operator;
  const { classes } = caches;
  const secrets = new SecretContents({ reader, secrets: caches.secrets, classes, clock });
  const removed = new RemovedMachines();
  const gone = new DeletedMachines();
  const late = new LateVMs(clock);
  const drivers = notingCalls(operator.under(MACHINE_LEASE).drivers, removed, late);
  const owners = ownersIn(caches);
  const budget = new ReplacementBudget({ machines: caches.machines, owners });
  const podsOf = ({ cluster }: Target, nodeName: string): PodSource => operator.targets.podsOn(cluster, nodeName);
  const drainer = createDrainer({ clock, random: operator.random, log, limits: new DrainLimits(), podsOf });
  const isClusterAPI = config.controllers.has('cluster-api');
  const open: DrainRulesDeps['open'] = (resource, refused) => operator.openCache(resource, refused);
  const rules = isClusterAPI
    ? new DrainRules({ definitions: caches.of(CLUSTER_API_KINDS).definitions, open })
    : undefined;
  const drain = rules === undefined ? drainer : obeying(drainer, rules);
  const share = { secrets, owners, budget, pace: new ReplacementPace(operator), vmStates: new VMStates() };
  return [
    // Before the machine controller forgets what it knew of a Machine that is gone.
    orphanVMs(operator, { ...share, removed, gone, ownerless }),
    unmanagedNodes(operator, gone),
    machineClass(operator, secrets, late),
    secret(operator),
    // Where the Leases go with the namespace, nobody is left to work in it.
    ...(config.leader.namespace === config.clusters.namespace ? [] : [roleBinding(operator)]),
    machine(operator, { ...share, drivers, drain, rules }),
    ...(rules === undefined
      ? []
      : [clusterAPI(operator, { drain, rules, keptVolumes: createKeptVolumes({ podsOf, clock, log }) })]),
  ];
}

/** The owners of Machines, as far as this process may read them: asked anew each time, because caches fill later. */
function ownersIn({ machineSets, machineDeployments }: Operator['caches']): Owners {
  return {
    get sets() {
      return filled(machineSets);
    },
    get deployments() {
      return filled(machineDeployments);
    },
  };
}

function filled<T extends KubeObject>(cache: Informer<T>): Informer<T> | undefined {
  return cache.hasSynced ? cache : undefined;
}
