import { eventsAbout } from '../../kube/events/event-sink.ts';
import { machineClasses } from '../../kube/client/resource.ts';
import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Controller } from '../../work/reconcile/controller.ts';
import { accountOf } from '../../driver/account.ts';
import type { SecretContents } from '../class-secrets/secret-contents.ts';
import { MACHINE_EVENT_SOURCE } from '../machine-facts/events.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { Owners } from '../machine-facts/owners.ts';
import type { LateVMs } from '../vms/late-vms.ts';
import { MachineClassController, type MachineClassDeps } from './controller.ts';
import { hasLeftoverNode, findOwnerlessVMs } from './ownerless-vms.ts';
import { keyOf } from '../../apis/meta.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Queue } from '../../work/workqueue/queue.ts';
import { classIndex } from '../../operator/indexes/class-index.ts';

interface MachineClassShare {
  readonly secrets: SecretContents;
  readonly owners: Owners;
  readonly late: LateVMs;
  readonly hasLost: MachineClassDeps['hasLost'];
  /** Whether the provider omits VMs in an account, and when the look began of which that is known of a class. */
  readonly distrusted: {
    readonly has: (account: string) => boolean;
    readonly lookedMs: (classKey: string) => number;
  };
}

/** Keeps MachineClasses that somebody needs. */
export function machineClass(
  operator: Operator,
  { secrets, owners, late, hasLost, distrusted }: MachineClassShare,
): Controller {
  const { clock, log, config, reader } = operator;
  const { classes, machines } = operator.caches;
  const { writer, drivers, targets } = operator.under(MACHINE_LEASE);
  const { namespace } = config.clusters;
  const { controllers, safety } = config;
  const needed = ['safety.orphan-vms', 'safety.unmanaged-nodes'] as const;
  const looksForLeftOnes = needed.every((name) => controllers.has(name)) && !safety.orphanVMsDryRun;
  const cleansUp = controllers.has('safety.orphan-vms') && !safety.orphanVMsDryRun;
  const hasNodeLeft = (providerID: string): boolean =>
    looksForLeftOnes && hasLeftoverNode(providerID, { machines, targets: targets.all() });
  const sets = (): readonly MachineSet[] => owners.sets?.list() ?? [];
  const ownerlessDeps = { classes, drivers, secrets, reader, namespace, machines, hasNodeLeft, cleansUp, sets, log };
  const controller = new MachineClassController({
    classes,
    machines,
    writer,
    late,
    hasLost,
    isDistrusted: (one) => distrusted.has(accountOf(drivers.resolve(one)?.provider ?? '', one)),
    lookedMs: (key) => (controllers.has('safety.orphan-vms') ? distrusted.lookedMs(key) : Infinity),
    graceMs: safety.orphanVMsGraceMs,
    ownerlessVMs: (one, _sinceMs, signal) => findOwnerlessVMs(ownerlessDeps, one, signal),
    recorder: eventsAbout(machineClasses, operator.recorder(MACHINE_EVENT_SOURCE)),
    clock,
    log,
  });
  return {
    name: 'machine-class',
    queue: 'machineclass',
    lease: MACHINE_LEASE,
    concurrency: config.machine.concurrency,
    reconcile: (key, signal) => controller.reconcile(key, signal),
    watches: [(queue) => wakeMachineClasses(operator.caches, queue)],
  };
}

export function wakeMachineClasses({ classes, machines }: Pick<Caches, 'classes' | 'machines'>, queue: Queue): void {
  classes.onChange((old, current) => {
    const one = current ?? old;
    if (one !== undefined) queue.add(keyOf(one), classes.hasSynced ? 'normal' : 'low');
  });
  machines.onChange((old, current) => {
    const before = old === undefined ? [] : classIndex(old);
    const after = current === undefined ? [] : classIndex(current);
    const hasChanged = (key: string): boolean => before.includes(key) !== after.includes(key);
    for (const key of new Set([...before, ...after].filter(hasChanged)))
      queue.add(key, machines.hasSynced ? 'normal' : 'low');
  });
}
