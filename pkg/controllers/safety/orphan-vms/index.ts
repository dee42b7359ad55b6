import { ActivityRegistry } from '../../../work/activity/registry.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { eventsAbout } from '../../../kube/events/event-sink.ts';
import { keyBeside } from '../../../apis/meta.ts';
import { CONTROL } from '../../../kube/gate/gate.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { machineClasses, machines as machineResource } from '../../../kube/client/resource.ts';
import { MACHINE_LEASE } from '../../../kube/leader/names.ts';
import { orphanVMMetrics } from './metrics.ts';
import type { Operator } from '../../../operator/operator.ts';
import type { Controller } from '../../../work/reconcile/controller.ts';
import type { SecretContents } from '../../class-secrets/secret-contents.ts';
import { machinesNamed } from '../../machine-facts/namesakes.ts';
import { MACHINE_EVENT_SOURCE } from '../../machine-facts/events.ts';
import type { ReplacementBudget } from '../../machine-facts/replacement-budget.ts';
import type { ReplacementPace } from '../../machine-facts/pace.ts';
import type { VMStates } from '../../machine-facts/vm-states.ts';
import { identify, mayBeOfOther, ownershipOf } from '../../vms/ownership.ts';
import type { RemovedMachines } from '../removed-machines.ts';
import type { DeletedMachines } from '../deleted-machines.ts';
import type { OwnerlessVMs } from '../ownerless-vms.ts';
import { BlindAccounts } from './blind-accounts.ts';
import { OrphanBrake } from './brake.ts';
import { Collector } from './collector.ts';
import { OrphanVMsController } from './controller.ts';
import { Evidence } from './evidence.ts';
import { ForgottenMachines } from './forgotten.ts';
import { LeftBehind } from './left-behind.ts';
import { LeftoverNodes } from './leftover-nodes.ts';
import { dropSettledNotes } from './settled-notes.ts';
import { SilentClasses } from './silent-classes.ts';
import { StateLists } from './state-lists.ts';
import { VanishedVMs } from './vanished-vms.ts';
import { ORPHAN_VMS_KEY, wakeOrphanVMs } from './wake.ts';

export interface OrphanVMsShare {
  readonly secrets: SecretContents;
  readonly budget: ReplacementBudget;
  readonly pace: ReplacementPace;
  readonly removed: RemovedMachines;
  readonly gone: DeletedMachines;
  readonly ownerless: OwnerlessVMs;
  readonly vmStates: VMStates;
}

const NAME = 'safety.orphan-vms';
/** So many VMs are deleted at once; the rest waits. */
const DELETIONS_AT_ONCE = 20;
const ACTIVITY_LIMITS = { create: 1, initialize: 1, status: 1, delete: DELETIONS_AT_ONCE, drain: 1 };

/** Finds VMs without a Machine and Machines without a VM. */
export function orphanVMs(operator: Operator, share: OrphanVMsShare): Controller {
  const { clock, registry, config, reader } = operator;
  const { machines, classes } = operator.caches;
  const { gate: trust, writer, targets, drivers } = operator.under(MACHINE_LEASE);
  const { secrets, gone, ownerless, removed, vmStates } = share;
  const { orphanVMsGraceMs: graceMs, orphanVMsPeriodMs: periodMs, orphanVMsDryRun: isDryRun } = config.safety;
  const ofNamespace = { metadata: { namespace: config.clusters.namespace } };
  const log = operator.log.child({ controller: NAME });
  const metrics = orphanVMMetrics(registry, () => ownerless.list().length);
  const recorder = eventsAbout(machineClasses, operator.recorder(MACHINE_EVENT_SOURCE));
  const machineEvents = eventsAbout(machineResource, operator.recorder(MACHINE_EVENT_SOURCE));
  const told = { recorder, metrics, log, isDryRun };

  const activities = new ActivityRegistry({
    clock,
    log,
    // The states of activities are those of the machine controller.
    metrics: { track: () => undefined, settled: (...ended) => operator.metrics.activity.settled(...ended) },
    limits: ACTIVITY_LIMITS,
  });
  // Where namespaces share a target, names are found in all of them.
  const named = (name: string): Machine | undefined => machines.get(keyBeside(ofNamespace, name));
  const ofIt = (vm: ListedMachine): Machine[] => [
    ...machines.byIndex('providerID', vm.providerID),
    ...[named(vm.machineName)].filter((one) => one !== undefined),
  ];
  const collector = new Collector(ORPHAN_VMS_KEY, {
    ...told,
    activities,
    isOwned: (vm, isListed) =>
      ownershipOf(vm, identify(ofIt(vm)), isListed) !== 'none' || mayBeOfOther(vm, config.clusters.namespace, machines),
    namesakeOf: ({ machineName }) => named(machineName),
    collected({ providerID, machineName }) {
      ownerless.remove(providerID);
      // Nobody has recorded what its Node is called.
      gone.addLate({ name: machineName, nodeName: machineName, providerID });
    },
  });
  const leftBehind = new LeftBehind(ORPHAN_VMS_KEY, {
    ...told,
    activities,
    namesakes: (name) => machines.byIndex('name', name).map(({ metadata }) => metadata.uid),
    isVMTaken: (providerID) => machines.byIndex('providerID', providerID).length > 0,
    liveNamesakes: async (name, signal) => {
      if (operator.sharedTarget !== undefined)
        return (await machinesNamed(name, reader, signal)).map(({ metadata }) => metadata.uid);
      const place = { namespace: config.clusters.namespace, name };
      const live = await reader.get(machineResource, place, { signal, metadataOnly: true }).catch(ignoreNotFound);
      return live === undefined ? [] : [live.metadata.uid];
    },
    collected(machine) {
      ownerless.remove(machine.providerID);
      gone.addLate(machine);
    },
  });
  const forgotten = new ForgottenMachines({ classes, recorder, log });
  operator.onSetBack(() => {
    forgotten.add(removed.missed);
    removed.forgetFinished();
  });
  const missingVMs = new Evidence(graceMs);
  const settings = config.machine;
  const common = { machines, classes, reader, trust, clock, log };
  const vanished = new VanishedVMs(
    { ...common, ...share, writer, targets, recorder: machineEvents, metrics, settings },
    missingVMs,
  );
  const left = { gone, machines, targets: targets.all(), log };
  const controller = new OrphanVMsController({
    ...common,
    drivers,
    secrets,
    namespace: config.clusters.namespace,
    collector,
    brake: new OrphanBrake({ ...told, forgotten, removed, clock }),
    forgotten,
    recorder,
    metrics,
    vanished,
    silentClasses: new SilentClasses({ vanished, missingVMs, recorder, clock, periodMs }),
    blindAccounts: new BlindAccounts({ machines, targets, recorder, log, graceMs }),
    missingVMs,
    orphans: new Evidence(graceMs),
    leftNodes: new LeftoverNodes({ ...left, graceMs, isDryRun }),
    leftBehind,
    dropSettledNotes: (seen, signal) => dropSettledNotes({ ...left, leftBehind, writer }, seen, signal),
    ownerless,
    vmStates,
    states: new StateLists({ classes, machines, drivers, secrets, vmStates, clock, log }),
    gone,
    removed,
    clusters: [CONTROL, ...targets.all().map(({ cluster }) => cluster)],
    periodMs,
    graceMs,
  });
  return {
    name: NAME,
    queue: 'machinesafetyorphanvms',
    lease: MACHINE_LEASE,
    concurrency: 1,
    reconcile: (_key, signal) => controller.reconcile(signal),
    watches: [
      (queue) => activities.onEnd((key) => queue.add(key)),
      (queue) => wakeOrphanVMs({ machines, classes, queue, controller, trust, removed, gone, ownerless, log }),
    ],
    async end(queue, stopMs) {
      await Promise.all([queue.stop(stopMs), activities.stop(stopMs)]);
    },
  };
}
