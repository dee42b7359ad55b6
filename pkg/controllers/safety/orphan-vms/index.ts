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
import type { Owners } from '../../machine-facts/owners.ts';
import type { ReplacementBudget } from '../../machine-facts/replacement-budget.ts';
import type { ReplacementPace } from '../../machine-facts/pace.ts';
import type { Zones } from '../../machine-facts/zones.ts';
import type { VMStates } from '../../machine-facts/vm-states.ts';
import { identify, type MachinesByIdentity, mayBeOfOther, namesakesOf, ownershipOf } from '../../vms/ownership.ts';
import type { RemovedMachines } from '../removed-machines.ts';
import type { DeletedMachines } from '../deleted-machines.ts';
import type { DistrustedAccounts } from '../distrusted-accounts.ts';
import type { OwnerlessVMs } from '../ownerless-vms.ts';
import { BlindAccounts } from './blind-accounts.ts';
import { OrphanBrake } from './brake.ts';
import type { Collaborators } from './collaborators.ts';
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
  readonly zones: Zones;
  readonly secrets: SecretContents;
  readonly owners: Owners;
  readonly budget: ReplacementBudget;
  readonly pace: ReplacementPace;
  readonly removed: RemovedMachines;
  readonly gone: DeletedMachines;
  readonly ownerless: OwnerlessVMs;
  readonly distrusted: DistrustedAccounts;
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
  const { gone, ownerless, removed } = share;
  const { orphanVMsGraceMs: graceMs, orphanVMsPeriodMs: periodMs, orphanVMsDryRun: isDryRun } = config.safety;
  const { namespace } = config.clusters;
  const log = operator.log.child({ controller: NAME });
  const activities = new ActivityRegistry({
    clock,
    log,
    // The states of activities are those of the machine controller.
    metrics: { track: () => undefined, settled: (...ended) => operator.metrics.activity.settled(...ended) },
    limits: ACTIVITY_LIMITS,
  });
  const given: Collaborators = {
    ...share,
    machines,
    classes,
    namespace,
    drivers,
    reader,
    writer,
    targets,
    trust,
    activities,
    recorder: eventsAbout(machineClasses, operator.recorder(MACHINE_EVENT_SOURCE)),
    metrics: orphanVMMetrics(registry, () => ownerless.list().length),
    clock,
    log,
    periodMs,
    graceMs,
    isDryRun,
  };

  // Where namespaces share a target, names are found in all of them.
  const named = (name: string): Machine | undefined => machines.get(keyBeside({ metadata: { namespace } }, name));
  const ofIt = (vm: ListedMachine): MachinesByIdentity => {
    const namesake = named(vm.machineName);
    // Few VMs are asked for: they are about to be deleted.
    const isTagged = vm.machineUID === undefined || vm.machineUID === namesake?.metadata.uid;
    const tagged = isTagged ? undefined : machines.list().find(({ metadata }) => metadata.uid === vm.machineUID);
    const known = [...machines.byIndex('providerID', vm.providerID), namesake, tagged];
    return identify(known.filter((one) => one !== undefined));
  };
  const collector = new Collector(ORPHAN_VMS_KEY, {
    ...given,
    isOwned: (vm, isListed) => ownershipOf(vm, ofIt(vm), isListed) !== 'none' || mayBeOfOther(vm, namespace, machines),
    namesakeOf: (vm) => namesakesOf(vm, ofIt(vm))[0],
    collected({ providerID, machineName }) {
      ownerless.remove(providerID);
      // Nobody has recorded what its Node is called.
      gone.addLate({ name: machineName, nodeName: machineName, providerID });
    },
    stays: ({ providerID }) => gone.forgetVM(providerID),
  });
  const leftBehind = new LeftBehind(ORPHAN_VMS_KEY, {
    ...given,
    namesakes: (name) => machines.byIndex('name', name),
    isVMTaken: (providerID) => machines.byIndex('providerID', providerID).length > 0,
    liveNamesakes: async (name, signal) => {
      if (operator.sharedTarget !== undefined)
        return (await machinesNamed(name, reader, signal)).map(({ metadata }) => metadata.uid);
      const live = await reader
        .get(machineResource, { namespace, name }, { signal, metadataOnly: true })
        .catch(ignoreNotFound);
      return live === undefined ? [] : [live.metadata.uid];
    },
    collected(machine) {
      ownerless.remove(machine.providerID);
      gone.addLate(machine);
    },
  });
  const forgotten = new ForgottenMachines(given);
  operator.onSetBack(() => {
    forgotten.add(removed.missed);
    removed.forgetFinished();
  });
  const missingVMs = new Evidence(graceMs);
  const machineEvents = eventsAbout(machineResource, operator.recorder(MACHINE_EVENT_SOURCE));
  const vanished = new VanishedVMs({ ...given, ...share, machineEvents, settings: config.machine }, missingVMs);
  const controller = new OrphanVMsController({
    ...given,
    clusters: [CONTROL, ...targets.all().map(({ cluster }) => cluster)],
    collector,
    brake: new OrphanBrake({ ...given, forgotten }),
    sets: () => share.owners.sets?.list() ?? [],
    forgotten,
    vanished,
    silentClasses: new SilentClasses({ ...given, vanished, missingVMs }),
    blindAccounts: new BlindAccounts(given),
    missingVMs,
    orphans: new Evidence(graceMs),
    leftNodes: new LeftoverNodes(given),
    leftBehind,
    dropSettledNotes: (seen, signal) => dropSettledNotes({ ...given, leftBehind }, seen, signal),
    states: new StateLists(given),
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
