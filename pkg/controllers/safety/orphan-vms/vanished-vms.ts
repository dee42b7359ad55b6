import PQueue from 'p-queue';

import { nodeNameOf, phaseOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted, keyOf } from '../../../apis/meta.ts';
import { fromTimestamp, toTimestamp } from '../../../base/clock/clock.ts';
import { DriverError } from '../../../driver/error.ts';
import { CONTROL, type Cluster } from '../../../kube/gate/gate.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { statusPatch } from '../../../kube/client/patch.ts';
import { machines as machineResource, nodes } from '../../../kube/client/resource.ts';
import { CLASS_INDEX, classIndex } from '../../../operator/indexes/class-index.ts';
import type { MachineEventSink } from '../../machine-facts/events.ts';
import type { ReplacementBudget } from '../../machine-facts/replacement-budget.ts';
import { belongsTo } from '../../machine-facts/node-owner.ts';
import { isHealthy } from '../../machine-facts/node-health.ts';
import type { ReplacementPace } from '../../machine-facts/pace.ts';
import { hold, type Hold, withHold } from '../../machine-facts/replacement-hold.ts';
import { paceFactsOf, type TurnDeps } from '../../machine-facts/replacement-turn.ts';
import { watchedConditionsOf, type MachineSettings } from '../../machine-facts/settings.ts';
import { beginPhase, copyOf, setOperation } from '../../machine-facts/status.ts';
import { machineStatusChange } from '../../machine-facts/status-change.ts';
import type { OfAccount, Unlisted } from './blind-accounts.ts';
import type { Collaborators } from './collaborators.ts';
import { type Evidence, type Proof, describeAnswers, describeProof, proofFields, type Snapshot } from './evidence.ts';
import type { ClassAccess } from './survey.ts';

/** A Machine whose VM the provider does not know; with the proof, if this look completes it. */
export interface Suspect {
  readonly machine: Machine;
  readonly proof: Proof | undefined;
}

interface Deps
  extends
    TurnDeps,
    Pick<
      Collaborators,
      'machines' | 'reader' | 'writer' | 'targets' | 'trust' | 'metrics' | 'clock' | 'graceMs' | 'log'
    > {
  readonly budget: Pick<ReplacementBudget, 'tryAcquire' | 'poolOf'>;
  /** Shared with the machine controller, as the fleet is. */
  readonly pace: Pick<ReplacementPace, 'waitMs' | 'begin'>;
  readonly machineEvents: MachineEventSink;
  readonly settings: TurnDeps['settings'] & Pick<MachineSettings, 'nodeConditions'>;
}

/** So many Machines of a list are asked for in one round, and of an account at most at once; a provider that lists nothing must not be flooded. */
const ASKED_A_ROUND = 50;
/** So many of all accounts at once: those of a Secret for each class may be one. */
const ASKED_AT_ONCE = 500;
/** So many of each account in any case: one that hangs leaves way to the others. */
const LEAST_AT_ONCE = 5;
/** After so long a round asks for no more: the look has other work, and only so long in all. */
const MOST_MS = 30_000;

/**
 * Fails Machines whose VM is gone, although nobody of ours deleted it: the list does not show it, GetMachineStatus says NotFound
 * in two rounds, and the Node, read live, is not healthy either. Their set replaces them, within the limit of replacements and at their
 * pace, also in a zone that is stopped: a machine without a VM loses nothing by that. A provider that is blind is not asked (BlindAccounts).
 */
export class VanishedVMs {
  readonly #deps: Deps;
  readonly #evidence: Evidence;

  constructor(deps: Deps, evidence: Evidence) {
    this.#deps = deps;
    this.#evidence = evidence;
  }

  /** Machines of `classKey` that had a VM when a look began: only those must be in its list. */
  settled(classKey: string): ReadonlyMap<string, string> {
    const known = this.#ofClass(classKey).filter(hasSettled);
    return new Map(known.map(({ metadata, spec }) => [metadata.uid, providerIDOf({ spec })]));
  }

  /** The Machines of one class whose VM is not `listed`; `before` is what `settled` said before the list. */
  unlisted<T extends OfAccount>(
    list: T,
    listed: ReadonlySet<string>,
    before: ReadonlyMap<string, string>,
  ): Unlisted<T> {
    const expected = this.#ofClass(list.key).filter(
      (machine) => hasSettled(machine) && before.get(machine.metadata.uid) === machine.spec.providerID,
    );
    const machines = expected.filter(({ spec }) => !listed.has(providerIDOf({ spec })));
    return { list, machines, expected: expected.length };
  }

  /**
   * Asks for the VMs of those Machines, of the classes of one account: these come in turn, so that one that does not answer leaves the others their
   * share. Returns who is under suspicion: the VMs of all others may exist, whatever the lists say. `accounts`: of so many it is asked for now.
   */
  async examine(
    classes: readonly Unlisted[],
    sight: Snapshot,
    signal: AbortSignal,
    accounts = 1,
  ): Promise<readonly Suspect[]> {
    const { clock } = this.#deps;
    const untilMs = clock.monotonicMs() + MOST_MS;
    const share = Math.max(LEAST_AT_ONCE, Math.floor(ASKED_AT_ONCE / accounts));
    const pool = new PQueue({ concurrency: Math.min(ASKED_A_ROUND, share) });
    const asked = classes
      .flatMap(({ list, machines }) =>
        machines.slice(0, ASKED_A_ROUND).map((machine, place) => ({ list, machine, place })),
      )
      .toSorted((a, b) => a.place - b.place);
    const suspects = await Promise.all(
      asked.map(({ list, machine }) =>
        pool.add(async () =>
          clock.monotonicMs() < untilMs ? await this.#examine(list, machine, sight, signal) : undefined,
        ),
      ),
    );
    return suspects.filter((one) => one !== undefined);
  }

  /** Fails those of them that are proved. */
  async fail(suspects: readonly Suspect[], signal: AbortSignal): Promise<void> {
    await Promise.all(
      suspects.map(async ({ machine, proof }) => {
        if (proof !== undefined) await this.#fail(machine, proof, describeProof(proof), signal);
      }),
    );
  }

  /** Machines of `classKey` that have a VM and no target cluster, in which their Node would tell of it. */
  withoutNode(classKey: string): readonly Machine[] {
    return this.#ofClass(classKey).filter(
      (machine) => hasSettled(machine) && this.#deps.targets.of(machine) === undefined,
    );
  }

  /** Asks for the VM of a Machine that no list could show, and fails it unless the provider is `doubted`. Returns its UID if it is under suspicion. */
  async ask(
    access: ClassAccess,
    machine: Machine,
    sight: Snapshot,
    signal: AbortSignal,
    { isDoubted = false } = {},
  ): Promise<string | undefined> {
    const suspect = await this.#examine(access, machine, sight, signal);
    if (suspect?.proof !== undefined && !isDoubted)
      await this.#fail(machine, suspect.proof, describeAnswers(suspect.proof), signal);
    return suspect?.machine.metadata.uid;
  }

  async #examine(
    { key, driver, machineClass, secretData }: ClassAccess,
    machine: Machine,
    sight: Snapshot,
    signal: AbortSignal,
  ): Promise<Suspect | undefined> {
    try {
      await driver.getStatus({ machine, machineClass, secretData }, signal);
      // Here, because the look may end before it keeps what it has found.
      this.#evidence.drop(machine.metadata.uid);
      return undefined;
    } catch (err) {
      signal.throwIfAborted();
      // Nobody can say more than the list does; that alone fails no machine.
      if (DriverError.hasCode(err, 'Unimplemented')) return { machine, proof: undefined };
      if (!DriverError.hasCode(err, 'NotFound')) return undefined;
    }
    const proof = this.#evidence.see(machine.metadata.uid, key, sight);
    return { machine, proof: mayShowYet(machine, this.#deps) ? undefined : proof };
  }

  /** Machines whose VMs were requested with this class: of others the provider may know nothing. */
  #ofClass(classKey: string): readonly Machine[] {
    const needed = this.#deps.machines.byIndex(CLASS_INDEX, classKey);
    return needed.filter((machine) => classIndex(machine)[0] === classKey);
  }

  async #fail(machine: Machine, proof: Proof, description: string, signal: AbortSignal): Promise<void> {
    const { trust, budget, pace, log } = this.#deps;
    const clusters = this.#clustersOf(machine);
    if (trust.graceLeftMs(clusters) > 0) return;
    if (await this.#works(machine, signal)) {
      log.warn({ machine: keyOf(machine) }, 'kept a machine with a healthy node but no VM at the provider');
      return;
    }
    // The pace goes by phases, which follow the Node with the machine's next pass, and by what looks show where there are no Nodes.
    // Its Node was seen: it is to become Unknown first.
    if (phaseOf(machine) === 'Running' && (machine.status?.conditions ?? []).length > 0) return;
    const isLost = (other: Machine): boolean => this.#evidence.has(other.metadata.uid) && hasSettled(other);
    const pool = budget.poolOf(machine);
    const facts = pool && paceFactsOf(this.#deps, machine, pool, isLost);
    if (facts !== undefined && pace.waitMs(facts) > 0) return this.#delay(machine, hold('pace'));
    using grant = budget.tryAcquire(machine);
    if (grant === undefined) {
      const kind = pool?.limit === 0 ? 'stopped' : 'limit';
      return this.#delay(machine, hold(kind));
    }
    if (facts !== undefined) pace.begin(facts);
    await this.#write(machine, proof, description, clusters, signal);
  }

  /** Says so in each look, in the same words: the machine itself shows nothing of a VM that is gone. */
  #delay(machine: Machine, held: Hold): void {
    const { machineEvents, log } = this.#deps;
    const message = withHold(`${vanished(machine)}.`, held);
    machineEvents.event({ object: machine, type: 'Warning', reason: 'ReplacementDelayed', message });
    log.debug({ machine: keyOf(machine), why: held.kind }, 'delayed the replacement of a machine whose VM is gone');
  }

  /** Whether the Node is healthy, read live. A driver that loses sight of its VMs must not cost machines that work. */
  async #works(machine: Machine, signal: AbortSignal): Promise<boolean> {
    const { machines, targets, settings } = this.#deps;
    const target = targets.of(machine);
    const name = nodeNameOf(machine);
    if (target === undefined || name === '') return false;
    const node = await target.reader.get(nodes, { name }, { signal }).catch(ignoreNotFound);
    if (node === undefined || !belongsTo(node, machine, machines)) return false;
    return isHealthy(node.status?.conditions ?? [], watchedConditionsOf(machine, settings));
  }

  /** The write holds only for the Machine as it is now, and only if it still is the one that was looked at. */
  async #write(
    { metadata, spec }: Machine,
    proof: Proof,
    description: string,
    clusters: readonly Cluster[],
    signal: AbortSignal,
  ): Promise<void> {
    const { reader, writer, clock, machineEvents, metrics, log } = this.#deps;
    const { name, namespace = '', uid } = metadata;
    const live = await reader.get(machineResource, { namespace, name }, { signal });
    if (live.metadata.uid !== uid || !hasSettled(live) || live.spec.providerID !== spec.providerID) return;

    const failed = copyOf(live);
    const text = `${vanished({ spec })}: ${description}`;
    beginPhase(failed, 'Failed', clock.now());
    const operation = { type: 'HealthCheck', state: 'Failed', errorCode: 'NotFound', description: text } as const;
    setOperation(failed, operation, clock.now());
    const change = machineStatusChange(live, failed) ?? {};
    await writer.patch('destroy', machineResource, { namespace, name }, statusPatch(live, change), {
      signal,
      clusters,
    });
    machineEvents.event({ object: live, type: 'Warning', reason: 'VMVanished', message: `${text}.` });
    metrics.vanishedVMs.inc();
    log.warn(
      { machine: keyOf(live), providerID: spec.providerID, ...proofFields(proof), at: toTimestamp(clock.now()) },
      'machine failed because its VM is gone',
    );
  }

  #clustersOf(machine: Machine): Cluster[] {
    const target = this.#deps.targets.of(machine);
    return target === undefined ? [CONTROL] : [CONTROL, target.cluster];
  }
}

function vanished(machine: Pick<Machine, 'spec'>): string {
  return `VM ${providerIDOf(machine)} no longer exists`;
}

/** Phases of machines that get their first VM, or need none any more. */
const OTHERS: ReadonlySet<string> = new Set(['', 'Failed', 'Terminating']);

/**
 * Providers may be slow to show a VM that they have just made, in lists and by itself, and until its Node is there nothing else speaks for it. Looks
 * go on, so that it fails as soon as this is over.
 */
function mayShowYet(machine: Machine, { clock, graceMs }: Pick<Deps, 'clock' | 'graceMs'>): boolean {
  if (phaseOf(machine) !== 'Pending' && phaseOf(machine) !== 'Available') return false;
  const beganMs = fromTimestamp(machine.status?.currentStatus?.lastUpdateTime) ?? -Infinity;
  return Math.abs(clock.now() - beganMs) < 2 * graceMs;
}

/** Had its VM for certain, and is not on its way out. One whose VM is gone before it was set up fails to be set up forever. */
function hasSettled(machine: Machine): boolean {
  if (isBeingDeleted(machine) || OTHERS.has(phaseOf(machine))) return false;
  return providerIDOf(machine) !== '';
}
