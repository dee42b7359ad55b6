import type { KubeObject } from '../apis/meta.ts';
import type { Informer } from '../kube/cache/lister.ts';
import { MACHINE_LEASE, MANAGER_LEASE } from '../kube/leader/names.ts';
import type { Operator } from '../operator/operator.ts';
import type { Controller } from '../work/reconcile/controller.ts';
import { SecretContents } from './class-secrets/secret-contents.ts';
import { machineClass } from './machine-class/index.ts';
import { machineDeployment } from './machine-deployment/index.ts';
import { machineSet } from './machine-set/index.ts';
import { machine } from './machine/index.ts';
import { type Draining, drainingOf } from './draining.ts';
import { NodesInTarget } from './machine-facts/nodes-in-target.ts';
import type { Owners } from './machine-facts/owners.ts';
import { ReplacementBudget } from './machine-facts/replacement-budget.ts';
import { ReplacementPace } from './machine-facts/pace.ts';
import { VMStates } from './machine-facts/vm-states.ts';
import { Zones } from './machine-facts/zones.ts';
import { CreationBrake } from './replicas/creation-brake.ts';
import { ownerDeps } from './replicas/owner-deps.ts';
import { RemovedMachines } from './safety/removed-machines.ts';
import { LateVMs } from './vms/late-vms.ts';
import { DeletedMachines } from './safety/deleted-machines.ts';
import { notingCalls } from './safety/noted-calls.ts';
import { orphanVMs } from './safety/orphan-vms/index.ts';
import { overshoot } from './safety/overshoot/index.ts';
import { DistrustedAccounts } from './safety/distrusted-accounts.ts';
import { OwnerlessVMs } from './safety/ownerless-vms.ts';
import { unmanagedNodes } from './safety/unmanaged-nodes/index.ts';
import { roleBinding } from './role-binding/index.ts';
import { secret } from './secret/index.ts';
import type { ServedWorld } from './world.ts';

/** All controllers of the Leases that the process applies for, those of other APIs last. */
export function controllers(operator: Operator, worlds: readonly ServedWorld[]): Controller[] {
  const { leases } = operator.config;
  const ownerless = new OwnerlessVMs();
  const [rules] = worlds.flatMap((world) => world.podRules?.(operator) ?? []);
  const draining = drainingOf(operator, rules);
  return [
    ...(leases.has(MANAGER_LEASE) ? ownerControllers(operator, ownerless) : []),
    ...(leases.has(MACHINE_LEASE) ? machineControllers(operator, ownerless, draining) : []),
    ...worlds.flatMap((world) => world.controllers(operator, draining)),
  ];
}

function ownerControllers(operator: Operator, ownerless: OwnerlessVMs): Controller[] {
  const deps = ownerDeps(operator, new CreationBrake(operator));
  return [machineSet(operator, deps), machineDeployment(operator, deps), overshoot(operator, deps, ownerless)];
}

function machineControllers(operator: Operator, ownerless: OwnerlessVMs, { drain, rules }: Draining): Controller[] {
  const { clock, reader, caches, config } = operator;
  const { machines, classes } = caches;
  const { targets, drivers: ofLease } = operator.under(MACHINE_LEASE);
  const secrets = new SecretContents({ reader, secrets: caches.secrets, classes, clock });
  const removed = new RemovedMachines();
  const gone = new DeletedMachines();
  const late = new LateVMs(clock);
  const distrusted = new DistrustedAccounts();
  const drivers = notingCalls(ofLease, removed, late);
  const owners = ownersIn(caches);
  const zones = new Zones({ machines, classes, targets, settings: config.machine });
  const nodesInTarget = new NodesInTarget({ machines, targets, log: operator.log });
  const budget = new ReplacementBudget({ machines, owners, clock });
  const share = { secrets, owners, zones, budget, pace: new ReplacementPace(operator), vmStates: new VMStates() };
  return [
    // Before the machine controller forgets what it knew of a Machine that is gone.
    orphanVMs(operator, { ...share, removed, gone, ownerless, distrusted }),
    unmanagedNodes(operator, gone, nodesInTarget),
    machineClass(operator, {
      secrets,
      owners,
      late,
      hasLost: (key) => removed.hasLost(key),
      distrusted,
    }),
    secret(operator),
    // Where the Leases go with the namespace, nobody is left to work in it.
    ...(config.leader.namespace === config.clusters.namespace ? [] : [roleBinding(operator)]),
    machine(operator, {
      ...share,
      nodesInTarget,
      drivers,
      drain,
      rules,
      judgedVM: (uid, isGone) => removed.judgedVM(uid, isGone),
    }),
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
