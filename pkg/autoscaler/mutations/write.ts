import type { OwnerDeps } from '../../controllers/replicas/owner-deps.ts';
import PQueue from 'p-queue';

import { ServerError, Status } from '../rpc-error.ts';
import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { LAST_SCALER_CHANGE_ANNOTATION, TRIGGER_DELETION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyBeside } from '../../apis/meta.ts';
import { type Clock, toTimestamp } from '../../base/clock/clock.ts';
import { listedIn, nameIn } from '../../controllers/machine-deployment/scaling/scaler-handoff.ts';
import { atOnce } from '../../controllers/replicas/at-once.ts';
import { concernedTargets } from '../../controllers/replicas/concerned-targets.ts';
import { isConflict, ignoreNotFound, isNotFound, mayHaveHappened } from '../../kube/client/errors.ts';
import { mergePatchIfUnchanged } from '../../kube/client/patch.ts';
import { machineDeployments, machines } from '../../kube/client/resource.ts';
import type { NodeGroup } from '../groups.ts';
import type { RpcCall } from '../rpcs.ts';
import { isRefusal, type GroupChange, type GroupDecision, type Mutated } from './decision.ts';
import { type GroupState, groupStateOf, type GroupSources } from './group-state.ts';

export type WriteDeps = GroupSources & Pick<OwnerDeps, 'machineDeployments' | 'reader' | 'writer'>;

export interface Wish {
  readonly group: NodeGroup;
  /** Asked again whenever the group has changed before the write. */
  readonly decide: (state: GroupState) => GroupDecision;
  /** Decided again after it was done, it comes to nothing. */
  readonly isRepeatable: boolean;
}

/** An answer must still reach the client when nothing more is tried. */
const ANSWER_MS = 500;
/** No call takes longer, whatever the client's deadline is: who gives the Lease up waits for those that run. */
const LONGEST_MS = 30_000;
/** Between looks at what has become of a write, while the API server cannot be asked. */
const LOOK_AGAIN_MS = 100;
const READS_AT_ONCE = 10;

/**
 * Carries decisions about node groups out: each is one patch of the MachineDeployment, which holds only for the version that was
 * decided about. Decisions about one group come one after the other. On a conflict the group is read and decided about again; after an
 * answer that did not come it is looked what became of the write (see `writeOutcomeOf`), so that nothing is done twice.
 */
export class GroupWrites {
  readonly #deps: WriteDeps;
  readonly #turns = new Map<string, PQueue>();

  constructor(deps: WriteDeps) {
    this.#deps = deps;
  }

  /** Does what is wanted, once, or throws a ServerError that says why not. */
  async carryOut(wish: Wish, given: RpcCall): Promise<Mutated> {
    const call = bounded(given, this.#deps.clock);
    const key = `${wish.group.namespace}/${wish.group.name}`;
    const turns = this.#turns.get(key) ?? new PQueue({ concurrency: 1 });
    this.#turns.set(key, turns);
    try {
      return await turns.add(() => this.#carryOut(wish, call), { signal: call.signal });
    } finally {
      if (turns.size === 0 && turns.pending === 0) this.#turns.delete(key);
    }
  }

  async #carryOut(wish: Wish, call: RpcCall): Promise<Mutated> {
    let unanswered: Sent | undefined;
    let perhaps: Mutated | undefined;
    for (;;) {
      const now = await this.#read(wish, call, unanswered);
      if (now === undefined) continue;
      const fate = unanswered && settled(unanswered, now, wish);
      // What has happened already must be seen by anyone who asks next, as the answer to a write is.
      if (unanswered !== undefined && fate !== 'open') this.#deps.machineDeployments.wrote(now);
      if (unanswered !== undefined && fate === 'done') return unanswered.mutated;
      if (fate === 'unknown') perhaps = unanswered?.mutated;
      if (fate !== 'open') unanswered = undefined;

      const next = unanswered ?? (await this.#next(wish, now, call, perhaps !== undefined));
      // Nothing is left to do after a write of which nobody knows: it was that write.
      if (isNothing(next.mutated)) return perhaps ?? next.mutated;
      try {
        await this.#send(next, wish, call);
        return next.mutated;
      } catch (err) {
        if (isConflict(err)) continue;
        if (!mayHaveHappened(err)) throw unanswered === undefined ? err : unknown(wish, err);
        unanswered = next;
      }
    }
  }

  /** The MachineDeployment as it is; undefined to ask again, because it must be known what became of a write. */
  async #read({ group }: Wish, call: RpcCall, sent: Sent | undefined): Promise<MachineDeployment | undefined> {
    const { reader, clock } = this.#deps;
    const options = { signal: call.signal, timeoutMs: timeLeft(call, sent) };
    try {
      return await reader.get(machineDeployments, { namespace: group.namespace, name: group.name }, options);
    } catch (err) {
      if (isNotFound(err)) throw new ServerError(Status.NOT_FOUND, `group ${group.id} no longer exists`);
      if (sent === undefined || !mayHaveHappened(err)) throw err;
      await clock.sleep(LOOK_AGAIN_MS, call.signal);
      return undefined;
    }
  }

  async #next(wish: Wish, base: MachineDeployment, call: RpcCall, isInDoubt: boolean): Promise<Sent> {
    const change = await this.#decide(wish, base, call, isInDoubt);
    const before = replicasOf(base);
    const time = toTimestamp(this.#deps.clock.now());
    const { replicas, machines: names } = change;
    const mutated = { before, after: replicas, machines: names };
    return { base, replicas, entries: names.map((name) => `${name}~${time}`), time, mutated };
  }

  /**
   * A Machine that is to go is read from the API server, after its MachineDeployment: anyone who took it off the list there did so because
   * it is on its way out, and named again it would cost another replica. After a write of which nobody knows, what is refused may be the rest of it.
   */
  async #decide(
    { decide, group }: Wish,
    base: MachineDeployment,
    call: RpcCall,
    isInDoubt: boolean,
  ): Promise<GroupChange> {
    const live = new Map<string, Machine | undefined>();
    for (;;) {
      const decision = decide(groupStateOf(this.#deps, base, live));
      if (isRefusal(decision)) throw isInDoubt ? unconfirmed(group) : new ServerError(decision.code, decision.message);
      const unread = decision.machines.filter((name) => !live.has(name));
      if (unread.length === 0) return decision;
      await atOnce(READS_AT_ONCE, unread, async (name) => {
        live.set(name, await this.#machine(base, name, call));
      });
    }
  }

  async #machine(base: MachineDeployment, name: string, call: RpcCall): Promise<Machine | undefined> {
    const { namespace = '' } = base.metadata;
    const options = { signal: call.signal, timeoutMs: timeLeft(call, undefined) };
    return await this.#deps.reader.get(machines, { namespace, name }, options).catch(ignoreNotFound);
  }

  async #send({ base, replicas, entries, time }: Sent, { group }: Wish, call: RpcCall): Promise<void> {
    const { targets, writer, machines: cached } = this.#deps;
    const annotations = {
      [TRIGGER_DELETION_ANNOTATION]: [...listedIn(base), ...entries].join(','),
      [LAST_SCALER_CHANGE_ANNOTATION]: time,
    };
    const patch = mergePatchIfUnchanged(base, {
      ...(entries.length === 0 ? {} : { metadata: { annotations } }),
      spec: { replicas },
    });
    const going = entries.map((entry) => cached.get(keyBeside(base, nameIn(entry))));
    const clusters = concernedTargets(
      targets,
      going.filter((machine) => machine !== undefined),
    );
    const intent = replicas > replicasOf(base) ? 'change' : 'destroy';
    const options = { signal: call.signal, timeoutMs: timeLeft(call, undefined), clusters };
    await writer.patch(intent, machineDeployments, { namespace: group.namespace, name: group.name }, patch, options);
  }
}

interface Sent {
  /** What it followed from; it carried this version. */
  readonly base: MachineDeployment;
  readonly replicas: number;
  /** What it added to the list of Machines that are to go. */
  readonly entries: readonly string[];
  readonly time: string;
  readonly mutated: Mutated;
}

function isNothing({ before, after, machines: names }: Mutated): boolean {
  return before === after && names.length === 0;
}

/** The same write was not let through again, and the first may arrive yet: nobody may be told that nothing was changed. */
function unknown({ group }: Wish, err: unknown): ServerError {
  const why = err instanceof Error ? err.message : String(err);
  return new ServerError(
    Status.UNAVAILABLE,
    `the API server did not confirm whether it changed group ${group.id}, and cannot be reached (${why}): read the size of the group again`,
  );
}

/** What became of a write. When that cannot be known, what may be repeated is decided about again, and nothing else is. */
function settled(sent: Sent, now: MachineDeployment, { group, isRepeatable }: Wish): WriteOutcome {
  const fate = writeOutcomeOf(sent, now);
  if (fate !== 'unknown' || isRepeatable) return fate;
  throw unconfirmed(group);
}

function unconfirmed(group: NodeGroup): ServerError {
  return new ServerError(
    Status.ABORTED,
    `the API server did not confirm whether it changed group ${group.id}, which another client has changed since: read the size of the group again`,
  );
}

/** The same call, which ends at last also when its client waits for ever. */
function bounded(call: RpcCall, clock: Clock): RpcCall {
  const untilMs = clock.monotonicMs() + LONGEST_MS;
  return { ...call, leftMs: () => Math.min(call.leftMs(), untilMs - clock.monotonicMs()) };
}

/** For how long the next request may take: after one that hangs there must be time to look what became of it. */
function timeLeft(call: RpcCall, sent: Sent | undefined): number {
  const leftMs = call.leftMs() - ANSWER_MS;
  if (leftMs > 0) return leftMs / 2;
  throw new ServerError(
    Status.DEADLINE_EXCEEDED,
    sent === undefined
      ? 'the call timed out before anything was written: raise grpc_timeout in the cloud-config of the autoscaler'
      : 'the API server did not confirm in time whether it wrote the change: read the size of the group again',
  );
}

/**
 * What has become of a write, by the MachineDeployment as it is now.
 *
 * | since then                                                | then |
 * |---|---|
 * | nothing has changed                                       | open: it may still arrive. The same write again cannot happen twice, both carry one version |
 * | something has, but not the spec                           | missed: it did not happen, and cannot any more |
 * | the Machines that it names are listed                     | done |
 * | one change of the spec, to the size that it asked for     | done: by this write, or as if by it |
 * | others                                                    | unknown |
 */
type WriteOutcome = 'open' | 'missed' | 'done' | 'unknown';

export function writeOutcomeOf(
  { base, replicas, entries }: Pick<Sent, 'base' | 'replicas' | 'entries'>,
  now: MachineDeployment,
): WriteOutcome {
  if (now.metadata.uid !== base.metadata.uid) return 'unknown';
  if (now.metadata.resourceVersion === base.metadata.resourceVersion) return 'open';
  const changes = (now.metadata.generation ?? 0) - (base.metadata.generation ?? 0);
  if (changes === 0) return 'missed';
  const listed = new Set(listedIn(now));
  const isListed = entries.length > 0 && entries.every((entry) => listed.has(entry));
  return isListed || (changes === 1 && replicasOf(now) === replicas) ? 'done' : 'unknown';
}
