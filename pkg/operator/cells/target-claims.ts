import { CELL_MOVES_TO_ANNOTATION, CELL_TARGET_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../apis/wire.ts';
import { ApiError, ignoreNotFound } from '../../kube/client/errors.ts';
import { holderOf } from '../../kube/leader/lease.ts';
import { takenBy, TargetRefusedError } from '../target-refused-error.ts';
import { type ClaimLeases, type ClaimMarks, membersIn, withMembers } from './claim-leases.ts';
import { targetLeaseName } from './lease-names.ts';
import type { NodesOfCell } from './nodes-of-cell.ts';
import type { Shards } from './shards.ts';

export interface TargetClaimsOptions {
  readonly leases: ClaimLeases;
  /** Those that one namespace has now; of `''`, all of them together; all without. */
  readonly list: (namespace: string | undefined, signal: AbortSignal) => Promise<readonly Lease[]>;
  readonly hasMachines: (namespace: string) => boolean;
  /** Namespaces with Machines, also those that are not selected. */
  readonly withMachines: () => readonly string[];
  /** Whether any namespace, or this one, has Machines by a live read. Throws ApiError. */
  readonly findMachines: (namespace: string | undefined, signal: AbortSignal) => Promise<boolean>;
  /** Whether a namespace has Machines of ours that have a Node, or wait for one. */
  readonly hasNodes: (namespace: string) => boolean;
  /** What is known of the target cluster of all namespaces. */
  readonly common: CommonNodes;
  /** See Shards. */
  readonly replicas: Pick<Shards, 'haveOneTarget' | 'areSettled'>;
}

/** The Nodes of the target cluster of all namespaces. */
export interface CommonNodes {
  /** Namespaces that are cells. */
  readonly cells: () => readonly string[];
  readonly nodesOf: (namespace: string) => NodesOfCell;
  /** Resolves when the Nodes are known as of the present. Throws ApiError. */
  readonly untilPresent: (signal: AbortSignal) => Promise<void>;
  /** Whether a namespace says that its Machines are to move to the cluster of this UID, or to none. */
  readonly mayMoveTo: (uid: string, namespace: string) => boolean;
}

/** Holder of a target cluster that all namespaces have together; no namespace has this name. */
export const ALL_NAMESPACES = '*';
/** Value of the label of such a claim, and of the list of them. */
const OF_ALL = '';
/** In place of the UID of a cluster. */
export const NO_TARGET = 'none';
/** What all cells wait for is asked for less often than by one. */
const AGAIN_MS = 15_000;
/** Of the namespaces with Machines, so many are named. */
const NAMED = 3;

/**
 * Which namespace has a target cluster, for all replicas: the one that holds Lease `machinist-target-<UID of Namespace kube-system>`. It is
 * not renewed, and lasts as long as the namespace is selected or has Machines, or until it gets another target cluster. It gets none while it
 * has Machines: their Nodes are in the one that it has, and would all be missed. Where all namespaces have one target cluster, its Lease is of
 * them all, for as long as any has Machines.
 */
export class TargetClaims {
  readonly #options: TargetClaimsOptions;

  constructor(options: TargetClaimsOptions) {
    this.#options = options;
  }

  /** Takes the cluster for a namespace, in place of any other that it had. Throws TargetRefusedError while it must not have it, and ApiError. */
  async claim(uid: string, namespace: string, signal: AbortSignal): Promise<void> {
    const { leases, list, hasMachines } = this.#options;
    const name = targetLeaseName(uid);
    const claims = await list(namespace, signal);
    const others = claims.filter((lease) => lease.metadata.name !== name && holderOf(lease) === namespace);
    // Of one that has claimed nothing yet, the Machines may be from a time when all namespaces had one target cluster.
    const ofAll = claims.length === 0 && hasMachines(namespace) ? await list(OF_ALL, signal) : [];
    const former = ofAll.find((lease) => lease.metadata.name !== name);
    if (former !== undefined) {
      throw new TargetRefusedError(
        'TargetClusterChanged',
        `Another target cluster is that of all namespaces, by --target-kubeconfig, and its Machines may have their Nodes there: they would all be replaced. Correct the kubeconfig; or, if no Machines of any namespace have Nodes there, ${deletionOf(former)}.`,
      );
    }
    const [other] = others;
    if (other !== undefined && hasMachines(namespace)) {
      throw new TargetRefusedError(
        'TargetClusterChanged',
        `Its kubeconfig leads to another target cluster than that of its Machines, which would all be replaced. Correct the kubeconfig; or, if that is meant, ${deletionOf(other)}.`,
      );
    }
    // Whoever corrects a kubeconfig gives the cluster that it named by mistake to the namespace to which it belongs; first, or two that were
    // mixed up would wait for each other.
    await leases.release(others, notTarget, signal);
    await leases.take(
      {
        name,
        namespace,
        marked: asTargetOf(namespace),
        refused: (holder, unknown) =>
          holder === ALL_NAMESPACES
            ? takenByAll('Its target cluster', unknown)
            : takenBy(
                holder,
                (whose) =>
                  `Its target cluster is that of ${whose}, too: the Machines of both would claim each other's Nodes. Correct the kubeconfig of one of them${unknown === undefined ? '' : instead(unknown)}.`,
              ),
      },
      signal,
    );
  }

  /**
   * Takes the cluster for all namespaces, in place of any other that they had; `isOurs`: this process has had it already. Throws
   * TargetRefusedError while a namespace has it for itself, or any has Machines in another one, and ApiError.
   */
  async claimForAll(uid: string, signal: AbortSignal, isOurs = false): Promise<void> {
    const { leases, list, withMachines, findMachines, replicas } = this.#options;
    const name = targetLeaseName(uid);
    const claims = await list(OF_ALL, signal);
    const others = claims.filter((lease) => lease.metadata.name !== name);
    const [other] = others;
    const owners = withMachines();
    if (other !== undefined && owners.length > 0) {
      const text = (whose: string): string =>
        `--target-kubeconfig leads to another target cluster than before: the Machines${whose} would all be replaced. Correct it; or, if that is meant, ${deletionOf(other)}, and ${annotation('each namespace with Machines', uid)}.`;
      throw new TargetRefusedError('TargetClusterChanged', text(''), text(` of ${someOf(owners)}`), AGAIN_MS);
    }
    const isKnown = claims.length > 0 || isOurs;
    if (!(other === undefined ? isKnown || replicas.haveOneTarget : replicas.areSettled)) {
      throw notYet('other replicas are live, or were a moment ago, which may have another target cluster');
    }
    if (other !== undefined && (await findMachines(undefined, signal))) {
      throw notYet(
        'there are Machines that the cache does not show yet, of which none may be left for another cluster',
      );
    }
    if (!isKnown) await this.#requireNodesOfAny(uid, signal);
    await leases.release(others, notTarget, signal);
    await leases.take(
      {
        name,
        namespace: ALL_NAMESPACES,
        marked: asTargetOf(OF_ALL),
        refused: (holder) =>
          takenBy(
            holder,
            (whose) =>
              `The cluster of --target-kubeconfig is the target or workload cluster of ${whose}, whose Nodes would be taken for those of all namespaces. Correct the flag; or, if that namespace has no Machines in another cluster, delete Lease ${name}.`,
          ),
      },
      signal,
    );
    // It is stored before these are listed: of two processes that take different clusters at once, at least one sees the other.
    const all = await list(OF_ALL, signal);
    if (all.every((lease) => lease.metadata.name === name)) return;
    const own = all.filter((lease) => lease.metadata.name === name);
    await leases.release(own, notTarget, signal);
    throw new ApiError(409, 'Conflict', 'another process has claimed another target cluster for all namespaces');
  }

  /**
   * Makes sure that the Machines of a namespace, whose Nodes are in a target cluster that others have too, have none in one of its own. Throws
   * TargetRefusedError, and ApiError.
   */
  async requireNone(namespace: string, signal: AbortSignal): Promise<void> {
    const { leases, hasMachines, findMachines } = this.#options;
    const own = await this.#ownOf(namespace, signal);
    const [claim] = own;
    if (claim !== undefined && (hasMachines(namespace) || (await findMachines(namespace, signal)))) {
      throw new TargetRefusedError(
        'TargetClusterChanged',
        `Its Machines have Nodes in a target cluster of its own, and in the one of --target-kubeconfig they would all be replaced. Start the manager with --cell-kubeconfig-secret; or, if it is the same cluster, ${deletionOf(claim)}; or, if they are to be replaced, do so, and ${annotation('the namespace', 'the UID of Namespace kube-system of that cluster')}.`,
      );
    }
    await leases.release(own, notTarget, signal);
  }

  /**
   * As a cell without a target cluster begins. Throws TargetRefusedError while its Machines have Nodes in one, whether or not a Lease says in
   * which.
   */
  async requireNoNodes(namespace: string): Promise<void> {
    const { hasNodes, common } = this.#options;
    if (!hasNodes(namespace) || common.mayMoveTo(NO_TARGET, namespace)) return;
    throw new TargetRefusedError(
      'TargetClusterChanged',
      `Its Machines have Nodes in a target cluster, or wait for them, and this manager has none for them: they would not be drained, and their Nodes would be left. Start the manager with the flags for it; or, if that is meant, ${annotation('the namespace', NO_TARGET)}.`,
      undefined,
      AGAIN_MS,
    );
  }

  /** Whether the cluster, and no other one, is that of all namespaces, and these have it. Throws ApiError. */
  async isOfAll(uid: string, members: readonly string[], signal: AbortSignal): Promise<boolean> {
    const claims = await this.#options.list(OF_ALL, signal);
    if (claims.length !== 1 || claims[0]?.metadata.name !== targetLeaseName(uid)) return false;
    const known = new Set(membersIn(claims[0].metadata));
    return members.every((name) => known.has(name));
  }

  /**
   * As a namespace begins with the cluster that all have: whether its Machines are those of another one, of which no Lease tells, such as that of a
   * manager of its own. One that was managed with it is not asked again: its Nodes may all be gone. Throws TargetRefusedError, and ApiError.
   */
  async requireNodes(uid: string, namespace: string, signal: AbortSignal): Promise<void> {
    const { list, common } = this.#options;
    if (common.nodesOf(namespace) !== 'elsewhere' || common.mayMoveTo(uid, namespace)) return;
    const claim = (await list(OF_ALL, signal)).find((lease) => lease.metadata.name === targetLeaseName(uid));
    if (claim !== undefined && membersIn(claim.metadata).includes(namespace)) return;
    await common.untilPresent(signal);
    if (common.nodesOf(namespace) !== 'elsewhere') return;
    throw new TargetRefusedError(
      'TargetClusterChanged',
      `None of the Nodes that its Machines have, or had, is in the cluster of --target-kubeconfig: they would all be replaced. Correct the flag, if that of another manager is meant; or, if they are to be replaced, ${annotation('the namespace', uid)}.`,
      undefined,
      AGAIN_MS,
    );
  }

  /** These namespaces are managed with the cluster that all have. Throws ApiError. */
  async join(uid: string, namespaces: readonly string[], signal: AbortSignal): Promise<void> {
    const { leases, list, common } = this.#options;
    const joined = (marks: ClaimMarks): ClaimMarks =>
      withMembersOf(marks, [...new Set([...membersIn(marks), ...namespaces])]);
    await leases.mark(targetLeaseName(uid), joined, signal);
    const cells = new Set(common.cells());
    // Whoever has looked for such before did not see it.
    if (namespaces.some((name) => !cells.has(name))) await this.#forgetMembers(await list(OF_ALL, signal), signal);
  }

  /** Deletes the claims of namespaces that do not need the cluster any more. Throws ApiError. */
  async tidy(signal: AbortSignal): Promise<void> {
    const { leases, list } = this.#options;
    const claims = await list(undefined, signal);
    await leases.tidy(claims, signal);
    await this.#forgetMembers(claims, signal);
  }

  /** Those that are cells no more, in the claims that are left of these. */
  async #forgetMembers(claims: readonly Lease[], signal: AbortSignal): Promise<void> {
    const { leases, common } = this.#options;
    const cells = new Set(common.cells());
    for (const { metadata } of claims) {
      if (membersIn(metadata).every((name) => cells.has(name))) continue;
      const left = (marks: ClaimMarks): ClaimMarks =>
        withMembersOf(
          marks,
          membersIn(marks).filter((name) => cells.has(name)),
        );
      await leases.mark(metadata.name, left, signal).catch(ignoreNotFound);
    }
  }

  /** As a first claim is made: if Nodes are shown, one at least has to be there. */
  async #requireNodesOfAny(uid: string, signal: AbortSignal): Promise<void> {
    const { cells, nodesOf, untilPresent, mayMoveTo } = this.#options.common;
    // Of those that have one of their own, a Lease tells.
    const owners = new Set((await this.#options.list(undefined, signal)).map(holderOf));
    const having = cells().filter((name) => nodesOf(name) !== 'none' && !mayMoveTo(uid, name) && !owners.has(name));
    if (having.length === 0 || having.some((name) => nodesOf(name) === 'here')) return;
    await untilPresent(signal);
    const elsewhere = having.filter((name) => nodesOf(name) === 'elsewhere');
    if (elsewhere.length === 0 || having.some((name) => nodesOf(name) === 'here')) return;
    const text = (whose: string): string =>
      `No Lease says which target cluster is that of all namespaces, and none of the Nodes that ${whose} have, or had, is in that of --target-kubeconfig: they would all be replaced. Correct the flag, if the one that they have is meant; or, if they are to be replaced, ${annotation('each namespace concerned', uid)}. One that is not to be managed can be excluded by removing its label.`;
    throw new TargetRefusedError(
      'TargetClusterChanged',
      text('Machines of the namespaces that the log of the manager names'),
      text(`Machines of ${someOf(elsewhere)}`),
      AGAIN_MS,
    );
  }

  /** Those that it holds itself. */
  async #ownOf(namespace: string, signal: AbortSignal): Promise<readonly Lease[]> {
    return (await this.#options.list(namespace, signal)).filter((lease) => holderOf(lease) === namespace);
  }
}

function notYet(message: string): ApiError {
  return new ApiError(503, 'ServiceUnavailable', message, { retryAfterMs: AGAIN_MS });
}

/** What makes a namespace give its Machines other Nodes. */
function annotation(whose: string, value: string): string {
  return `set annotation ${CELL_MOVES_TO_ANNOTATION} of ${whose} to ${value}`;
}

function withMembersOf({ labels, annotations = {} }: ClaimMarks, members: readonly string[]): ClaimMarks {
  return { ...(labels && { labels }), annotations: withMembers(annotations, members) };
}

/** What says whose target cluster it is: the namespace, or `OF_ALL`. */
function asTargetOf(whose: string): (before: ClaimMarks) => ClaimMarks {
  return ({ labels, annotations }) => ({
    labels: { ...labels, [CELL_TARGET_LABEL]: whose },
    ...(annotations && { annotations }),
  });
}

function notTarget({ labels = {}, annotations }: ClaimMarks): ClaimMarks {
  const { [CELL_TARGET_LABEL]: _target, ...others } = labels;
  return { labels: others, ...(annotations && { annotations: withMembers(annotations, []) }) };
}

/** All namespaces have it together, or had it; `claim`: if it is not known whether they still do. */
export function takenByAll(what: string, claim: Lease | undefined): TargetRefusedError {
  const remedy = claim === undefined ? '' : `; or, if no other namespace has Machines there, ${deletionOf(claim)}`;
  return new TargetRefusedError(
    'TargetClusterTaken',
    `${what} is that of all namespaces, by --target-kubeconfig: Nodes of other Machines are there. Correct the kubeconfig${remedy}.`,
  );
}

function someOf(owners: readonly string[]): string {
  const more = owners.length > NAMED ? [`${owners.length - NAMED} more`] : [];
  return `${owners.length === 1 ? 'namespace' : 'namespaces'} ${[...owners.slice(0, NAMED), ...more].join(', ')}`;
}

/** What helps where nobody knows whether the other namespace still needs the cluster. */
export function instead(claim: Lease): string {
  return `; or, if that namespace is gone, or has no Machines, ${deletionOf(claim)}`;
}

/** That of all namespaces is made again by a replica that has the cluster. */
function deletionOf(lease: Lease): string {
  const { name, namespace = '' } = lease.metadata;
  return `${holderOf(lease) === ALL_NAMESPACES ? 'stop all replicas and ' : ''}delete Lease ${name} in namespace ${namespace}`;
}
