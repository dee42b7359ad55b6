import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { Cluster } from '../../../kube/gate/gate.ts';
import { requeue, type StepResult } from '../../../work/reconcile/result.ts';
import { hasFinalizer } from '../../../apis/finalizers.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted, keyOf } from '../../../apis/meta.ts';
import { CLASS_INDEX, classIndex } from '../../../operator/indexes/class-index.ts';
import { isAccountOf } from '../../../driver/account.ts';
import { accountOfList, type BlindAccounts, type Distrust, type OfAccount, type Unlisted } from './blind-accounts.ts';
import type { Look, OrphanBrake, Proved } from './brake.ts';
import type { Collaborators } from './collaborators.ts';
import type { Collection, Collector } from './collector.ts';
import { mismatchedIDs } from './events.ts';
import type { Evidence, Snapshot } from './evidence.ts';
import type { LeftBehind } from './left-behind.ts';
import type { LeftoverNodes } from './leftover-nodes.ts';
import type { ForgottenMachines } from './forgotten.ts';
import { identify, ownershipOf } from '../../vms/ownership.ts';
import type { SilentClasses } from './silent-classes.ts';
import type { StateLists } from './state-lists.ts';
import { type ClassList, type Survey, survey } from './survey.ts';
import { unite, type UnitedVM } from './united-vms.ts';
import type { Suspect, VanishedVMs } from './vanished-vms.ts';

export interface OrphanVMsDeps extends Omit<Collaborators, 'writer' | 'targets' | 'activities' | 'isDryRun'> {
  /** The clusters that must be alive for anything to be proved. */
  readonly clusters: readonly Cluster[];
  readonly collector: Pick<Collector, 'collect' | 'keep' | 'settle'>;
  readonly brake: Pick<OrphanBrake, 'admit'>;
  /** As far as this process may read them. */
  readonly sets: () => readonly MachineSet[];
  readonly forgotten: Pick<ForgottenMachines, 'exist'>;
  readonly vanished: Pick<VanishedVMs, 'examine' | 'fail' | 'settled' | 'unlisted'>;
  readonly silentClasses: Pick<SilentClasses, 'examine'>;
  readonly blindAccounts: Pick<
    BlindAccounts,
    'apartMs' | 'contradict' | 'dropBefore' | 'judge' | 'noteListed' | 'size'
  >;
  /** Shared with `vanished`. */
  readonly missingVMs: Evidence;
  readonly orphans: Evidence;
  readonly leftNodes: Pick<LeftoverNodes, 'examine' | 'dropBefore' | 'size'>;
  readonly leftBehind: Pick<LeftBehind, 'clean' | 'settle' | 'size'>;
  /** Takes notes away that have served. */
  readonly dropSettledNotes: (survey: Survey, signal: AbortSignal) => Promise<void>;
  readonly states: Pick<StateLists, 'list' | 'seen'>;
}

/** So many VMs are named in one log line. */
const NAMED = 20;
const OUTAGE_RETRY_MS = 5_000;
/** When to look again at classes that could not be listed, at the latest. */
const FAILED_RETRY_MS = 60_000;

/**
 * Looks for VMs that no Machine has, and for Machines that have no VM. Two looks, at least `graceMs` apart and with nothing
 * frozen in between, must show the same; then the VM is deleted, or the Machine fails. A look that has found something is
 * followed by another one after `graceMs`, else after `periodMs`.
 */
export class OrphanVMsController {
  readonly #deps: OrphanVMsDeps;
  #dueMs = -Infinity;
  /** When the last look began. */
  #lookedMs = -Infinity;
  #hasBegun = false;
  #failedClasses: ReadonlySet<string> = new Set();
  /** Classes whose lists hold VMs that may be of another namespace. */
  readonly #mixedClasses = new Set<string>();
  /** Classes whose lists show VMs of Machines under other ids. */
  readonly #mismatchedClasses = new Set<string>();

  constructor(deps: OrphanVMsDeps) {
    this.#deps = deps;
  }

  /** The next pass is to look, whatever time it is. */
  hurry(): void {
    this.#dueMs = -Infinity;
  }

  /** The next look is to be soon: `graceMs` after the last one. */
  hasten(): void {
    this.#dueMs = Math.min(this.#dueMs, this.#lookedMs + this.#deps.graceMs);
  }

  /** Takes ended deletions, and looks when it is time. Throws ApiError. */
  async reconcile(signal: AbortSignal): Promise<StepResult> {
    const { collector, trust, clusters, orphans, missingVMs, leftNodes, leftBehind, blindAccounts, clock } = this.#deps;
    const running = collector.settle();
    leftBehind.settle();
    this.#begin();
    const nowMs = clock.monotonicMs();
    const trustedMs = trust.trustedForMs(clusters);
    for (const evidence of [orphans, missingVMs, leftNodes, blindAccounts]) evidence.dropBefore(nowMs - trustedMs);
    if (trustedMs === 0) return requeue(OUTAGE_RETRY_MS, 'the clusters to be reachable');
    if (this.#dueMs > nowMs) {
      const statesMs = await this.#deps.states.list(signal);
      return requeue(Math.min(this.#dueMs - nowMs, statesMs), 'the next check of the provider');
    }

    this.#lookedMs = nowMs;
    // Whoever asks for a look from now on asks for the next one: this may have passed by what happened. One that fails is due still.
    this.#dueMs = Infinity;
    let nextMs = 0;
    try {
      nextMs = await this.#check(nowMs, signal);
    } finally {
      this.#dueMs = Math.min(this.#dueMs, clock.monotonicMs() + nextMs);
    }
    const waitMs = this.#dueMs - clock.monotonicMs();
    this.#deps.states.seen();
    const statesMs = await this.#deps.states.list(signal);
    return requeue(
      Math.min(waitMs, statesMs),
      running > 0 ? 'VMs without a Machine to be deleted' : 'the next check of the provider',
    );
  }

  /** A look that never succeeds is overdue, too. */
  #begin(): void {
    const { metrics, drivers, clock } = this.#deps;
    if (this.#hasBegun || drivers.all().length === 0) return;
    this.#hasBegun = true;
    metrics.lastLook.set(clock.now() / 1_000);
  }

  /** One look; resolves with the time until the next one. */
  async #check(nowMs: number, signal: AbortSignal): Promise<number> {
    const { classes, machines, vanished, removed, forgotten, distrusted, clock, periodMs, graceMs, metrics } =
      this.#deps;
    const { orphans, missingVMs, leftNodes, leftBehind, blindAccounts, silentClasses } = this.#deps;
    // Before the first request: who vanishes or gets a VM from now on is judged by the next look.
    const missed = [...removed.missed];
    const departed = [...missed, ...removed.deleting()];
    const settled = new Map(
      classes.list().map(({ metadata: { namespace = '', name } }) => {
        const key = `${namespace}/${name}`;
        return [key, vanished.settled(key)] as const;
      }),
    );
    const seen = await survey(this.#deps, classes.list(), signal);
    this.#reportFailures(seen);
    this.#reportForeign(seen);
    forgotten.exist(seen.machines);
    this.#deps.vmStates.saw(
      seen.lists.flatMap((list) => list.vms),
      seen.failures.length === 0,
    );

    // Who has the name of one that vanished counts before it.
    const identities = identify([...departed, ...seen.machines]);
    const vms = unite(seen, identities, { classes, sets: this.#deps.sets() });
    const sight = { atMs: nowMs, wallMs: clock.now(), vms: vms.size, machines: seen.machines.length };
    const unseen = new Set(seen.failures.map(({ key }) => key));
    const shown = shownIn(seen);
    const unlistedOf = <T extends OfAccount>(list: T): Unlisted<T> =>
      vanished.unlisted(list, shown, settled.get(list.key) ?? new Map());
    const unlisted = seen.lists.map(unlistedOf);
    const beside = this.#accessesOf(seen).map(unlistedOf);
    const judged = Map.groupBy(vms.values(), ({ vm, isListed }) => ownershipOf(vm, identities, isListed));
    const candidates = judged.get('none') ?? [];
    // Before anything can end the look: what it has shown otherwise was not seen twice in a row.
    orphans.keep(new Set(candidates.map(({ vm }) => vm.providerID)), unseen);
    for (const { metadata, spec } of seen.machines)
      if (shown.has(providerIDOf({ spec }))) missingVMs.drop(metadata.uid);
    leftNodes.examine(seen, sight, unseen);
    blindAccounts.noteListed(seen.machines, shown, sight);
    // Before anything is believed that the same provider says; and before VMs without a Machine are, their lists are held against GetMachineStatus.
    const distrust = blindAccounts.judge(unlisted, sight, beside);
    const { suspects, doubted } = await this.#examine(unlisted, distrust, sight, signal);
    // One of a class that could not be listed counts once more, as all do after a look that has not come so far.
    removed.counted(missed.filter((machine) => !classIndex(machine).some((key) => unseen.has(key))));
    const gone = new Set([...suspects, ...doubted].map(({ machine }) => machine.metadata.uid));
    const contradicted = blindAccounts.contradict(unlisted, gone, beside);
    const doubtful = seen.lists.filter((list) => doubtsOf(list, contradicted).length > 0).map(accountOfList);
    const listed = seen.lists.map(({ key }) => key);
    distrusted.replace({ accounts: [...contradicted.keys(), ...doubtful], lookedMs: nowMs, listed });
    this.#reportMismatches(judged.get('other-id') ?? [], unseen);
    this.#judgeVMs({ candidates, shown: vms.values() }, contradicted, sight, unseen);
    await vanished.fail(suspects, signal);
    leftBehind.clean(seen);
    await this.#deps.dropSettledNotes(seen, signal);
    // Last, because it asks for one after the other.
    const silent = await silentClasses.examine(seen.unlistable, sight, signal);
    missingVMs.keep(new Set([...gone, ...silent]), unseen);
    if (unseen.size === 0) metrics.lastLook.set(clock.now() / 1_000);

    const found = [orphans, missingVMs, blindAccounts, leftNodes, leftBehind].reduce((sum, { size }) => sum + size, 0);
    if (found + departed.length > 0 || classes.list().some((one) => isLeaving(one, machines)))
      return Math.min(graceMs, periodMs);
    return unseen.size > 0 ? Math.min(FAILED_RETRY_MS, periodMs) : periodMs;
  }

  #judgeVMs(
    { candidates, shown }: { readonly candidates: readonly UnitedVM[]; readonly shown: Iterable<UnitedVM> },
    distrust: ReadonlyMap<string, Distrust>,
    sight: Snapshot,
    unseen: ReadonlySet<string>,
  ): void {
    const { orphans, ownerless, gone, blindAccounts, collector } = this.#deps;
    // A VM that we have deleted is still listed for a moment, and frees its place all the same.
    const ids = new Set(candidates.map(({ vm }) => vm.providerID));
    const deleted = new Set([...ids].filter((id) => gone.has(id)));
    const present = candidates.filter(({ vm }) => !deleted.has(vm.providerID));
    ownerless.replace(present.map(({ vm }) => vm));
    // Once for each list: there may be as many accounts as lists, and many VMs that all of these show.
    const lists = new Set(candidates.flatMap(({ shownBy }) => shownBy));
    const apartMs = new Map(
      [...lists].map((list) => [list, Math.min(...doubtsOf(list, distrust).map((one) => blindAccounts.apartMs(one)))]),
    );
    const proved: (Collection & Proved)[] = [];
    for (const one of candidates) {
      const proof = orphans.see(one.vm.providerID, one.access.key, sight);
      if (proof === undefined) continue;
      const isDoubted = one.shownBy.some((list) => proof.sinceMs > (apartMs.get(list) ?? -Infinity));
      proved.push({ ...one, proof, isDoubted });
    }
    collector.keep(ids, unseen);
    this.#collect({ proved, candidates: ids, deleted, shown, unseen, atMs: sight.atMs });
  }

  /** What was deleted before and is listed still is deleted once more, unless the list is not believed. */
  #collect({ proved, ...look }: Look<Collection & Proved>): void {
    const { collector, brake, gone } = this.#deps;
    const isAgain = ({ vm, isDoubted }: Proved): boolean => gone.has(vm.providerID) && !isDoubted;
    for (const one of proved.filter(isAgain)) collector.collect(one);
    const anew = proved.filter((one) => !isAgain(one));
    for (const one of brake.admit({ ...look, proved: anew })) collector.collect(one);
  }

  /** The classes that could not be listed. */
  #accessesOf({ failures }: Survey): readonly OfAccount[] {
    const { classes, drivers } = this.#deps;
    return failures.flatMap(({ key }) => {
      const machineClass = classes.get(key);
      const driver = machineClass === undefined ? undefined : drivers.resolve(machineClass);
      return machineClass === undefined || driver === undefined ? [] : [{ key, machineClass, driver }];
    });
  }

  /** Asks for the VMs of those Machines, of all accounts. Who is under suspicion at a provider that is `doubted` does not fail in this look. */
  async #examine(
    classes: readonly Unlisted[],
    distrust: ReadonlyMap<string, Distrust>,
    sight: Snapshot,
    signal: AbortSignal,
  ): Promise<Record<'suspects' | 'doubted', readonly Suspect[]>> {
    const { vanished, missingVMs } = this.#deps;
    const found: Record<'suspects' | 'doubted', Suspect[]> = { suspects: [], doubted: [] };
    const isBlind = ({ list }: Unlisted): boolean => distrust.get(accountOfList(list)) === 'blind';
    // Here, because the look may end before it keeps what it has found.
    for (const { metadata } of classes.filter(isBlind).flatMap(({ machines }) => machines))
      missingVMs.drop(metadata.uid);
    const trusted = classes.filter((one) => !isBlind(one));
    const byAccount = Map.groupBy(trusted, ({ list }) => accountOfList(list));
    const asked = [...byAccount.values()].filter((all) => all.some(({ machines }) => machines.length > 0)).length;
    // All at once: one that does not answer must not take up the time of the others.
    await Promise.all(
      [...byAccount].map(async ([account, ofAccount]) => {
        const suspects = await vanished.examine(ofAccount, sight, signal, asked);
        found[distrust.get(account) === 'doubted' ? 'doubted' : 'suspects'].push(...suspects);
      }),
    );
    return found;
  }

  /** Each class is told of once, until it can be listed again. */
  #reportFailures({ failures }: Survey): void {
    const news = failures.filter(({ key }) => !this.#failedClasses.has(key));
    this.#failedClasses = new Set(failures.map(({ key }) => key));
    for (const { key, error } of news) {
      this.#deps.log.warn({ class: key, err: error }, 'could not list the VMs of a class');
    }
  }

  /** Told at every look, for as long as it lasts; logged once. */
  #reportMismatches(vms: readonly UnitedVM[], unseen: ReadonlySet<string>): void {
    const { recorder, log } = this.#deps;
    const byClass = Map.groupBy(vms, ({ access }) => access.key);
    for (const [key, ofClass] of byClass) {
      // The order of a list may change; equal Events are counted as one.
      const [first, ...others] = ofClass.toSorted((a, b) => (a.vm.providerID < b.vm.providerID ? -1 : 1));
      if (first === undefined) continue;
      const { vm, access } = first;
      recorder.event(mismatchedIDs(access.machineClass, vm));
      if (this.#mismatchedClasses.has(key)) continue;
      this.#mismatchedClasses.add(key);
      const fields = { class: key, vms: others.length + 1, machine: vm.machineName, providerID: vm.providerID };
      log.warn(fields, 'ignored VMs whose provider IDs differ from those of their machines');
    }
    for (const key of this.#mismatchedClasses) {
      if (!byClass.has(key) && !unseen.has(key)) this.#mismatchedClasses.delete(key);
    }
  }

  /** Each class is told of once, until its list is clean again. */
  #reportForeign({ lists, failures }: Survey): void {
    const mixed = lists.filter(({ foreign }) => foreign.length > 0);
    const lasting = new Set([...mixed, ...failures].map(({ key }) => key));
    for (const key of this.#mixedClasses) if (!lasting.has(key)) this.#mixedClasses.delete(key);
    for (const { key, foreign } of mixed) {
      if (this.#mixedClasses.has(key)) continue;
      this.#mixedClasses.add(key);
      const named = foreign.slice(0, NAMED).map(({ machineName, providerID }) => `${machineName} (${providerID})`);
      const fields = { class: key, vms: foreign.length, named };
      this.#deps.log.warn(fields, 'ignored VMs of other namespaces');
    }
  }
}

/** Whether a class without Machines waits for its last VM: what its lists say counts only with a look after them. */
export function isLeaving(machineClass: MachineClass, machines: Pick<Collaborators['machines'], 'byIndex'>): boolean {
  if (!isBeingDeleted(machineClass) || !hasFinalizer(machineClass, MACHINE_FINALIZER)) return false;
  return machines.byIndex(CLASS_INDEX, keyOf(machineClass)).length === 0;
}

/**
 * Accounts because of which a list is not believed about VMs without a Machine. One of the whole cluster may show those of any class of its driver,
 * whose Secrets may all be of one account.
 */
function doubtsOf(list: ClassList, distrust: ReadonlyMap<string, Distrust>): readonly string[] {
  const isWhole = list.scope === 'cluster';
  const isOf = (account: string): boolean =>
    account === accountOfList(list) || (isWhole && isAccountOf(account, list.driver.provider));
  return [...distrust.keys()].filter(isOf);
}

/**
 * Provider ids of the VMs that may be those of our Machines. One without a namespace, in a list of a whole cluster, is of nobody in
 * particular, but there: earlier tools have tagged none.
 */
function shownIn({ lists }: Survey): ReadonlySet<string> {
  const untagged = lists.flatMap(({ foreign }) => foreign).filter((vm) => vm.machineNamespace === undefined);
  return new Set([...lists.flatMap(({ vms }) => vms), ...untagged].map(({ providerID }) => providerID));
}
