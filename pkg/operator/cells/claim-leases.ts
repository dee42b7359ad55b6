import { isDeepStrictEqual } from 'node:util';

import {
  CELL_MEMBER_PREFIX,
  CELL_TARGET_LABEL,
  CELL_WORKLOAD_LABEL,
  CELL_WORKLOAD_SECRETS_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { ObjectMeta } from '../../apis/meta.ts';
import type { Lease } from '../../apis/wire.ts';
import { ignoreNotFound, isAlreadyExists, isConflict } from '../../kube/client/errors.ts';
import type { HttpLeaseClient } from '../../kube/client/lease-client.ts';
import { holderOf } from '../../kube/leader/lease.ts';

/** What a claim says of the cluster: what the namespace has it for. */
export type ClaimMarks = Pick<ObjectMeta, 'labels' | 'annotations'>;

/** Of annotations that name the namespaces. */
const MEMBER = `${CELL_MEMBER_PREFIX}/`;

export interface ClaimLeasesOptions {
  /** Of the namespace in which the process has its Leases. */
  readonly leases: Pick<HttpLeaseClient, 'get' | 'create' | 'replace' | 'delete'>;
  /**
   * Whether the namespace that holds a claim still needs the cluster, by another source than a cache, too: one that it does not need is taken
   * over, but not one of which it is unknown.
   */
  readonly isNeeded: (lease: Lease) => Promise<boolean | 'unknown'>;
}

/** What is taken. */
export interface TakenClaim {
  /** Of the Lease. */
  readonly name: string;
  readonly namespace: string;
  /** As the namespace has it from now on; `before`: as it has it now. */
  readonly marked: (before: ClaimMarks) => ClaimMarks;
  /** Thrown while another namespace needs the cluster; `unknown`: its claim, if it is not known whether it does. */
  readonly refused: (holder: string, unknown: Lease | undefined) => Error;
}

/** Leases by which namespaces have clusters: one of each cluster, of one namespace at a time, whatever that has it for. They are not renewed. */
export class ClaimLeases {
  readonly #options: ClaimLeasesOptions;

  constructor(options: ClaimLeasesOptions) {
    this.#options = options;
  }

  /** Throws what `refused` makes, and ApiError. */
  async take({ name, namespace, marked, refused }: TakenClaim, signal: AbortSignal): Promise<void> {
    const { leases, isNeeded } = this.#options;
    try {
      await leases.create({ metadata: { name, ...marked({}) }, spec: { holderIdentity: namespace } }, { signal });
      return;
    } catch (err) {
      if (!isAlreadyExists(err)) throw err;
    }
    const lease = await leases.get(name, { signal });
    const holder = holderOf(lease);
    const needed = holder !== namespace && (await isNeeded(lease));
    if (needed !== false) throw refused(holder, needed === 'unknown' ? lease : undefined);
    // Of two that take it over at once, one meets a conflict, and tries again. Who has it already writes, too, so that whoever found a moment
    // ago that it is no longer needed does not delete it.
    const metadata = remarked(lease, marked(holder === namespace ? lease.metadata : withoutMarks(lease.metadata)));
    const leaseTransitions = (lease.spec?.leaseTransitions ?? 0) + 1;
    await leases.replace(
      { metadata, spec: { ...lease.spec, holderIdentity: namespace, leaseTransitions } },
      { signal },
    );
  }

  /** Takes marks away; a claim that has none left is deleted. Throws ApiError, Conflict when somebody has changed one meanwhile. */
  async release(
    claims: readonly Lease[],
    marked: (before: ClaimMarks) => ClaimMarks,
    signal: AbortSignal,
  ): Promise<void> {
    const { leases } = this.#options;
    for (const lease of claims) {
      const marks = marked(lease.metadata);
      const isHeld = [CELL_TARGET_LABEL, CELL_WORKLOAD_LABEL].some((label) => marks.labels?.[label] !== undefined);
      const released = isHeld
        ? leases.replace({ ...lease, metadata: remarked(lease, marks) }, { signal })
        : leases.delete(lease, { signal });
      await released.catch(ignoreNotFound);
    }
  }

  /** Changes the marks of a claim that is there. Throws ApiError, Conflict when somebody has changed it meanwhile. */
  async mark(name: string, marked: (before: ClaimMarks) => ClaimMarks, signal: AbortSignal): Promise<void> {
    const { leases } = this.#options;
    const lease = await leases.get(name, { signal });
    const marks = marked(lease.metadata);
    if (isDeepStrictEqual(marks.annotations ?? {}, lease.metadata.annotations ?? {})) return;
    await leases.replace({ ...lease, metadata: remarked(lease, marks) }, { signal });
  }

  /** Deletes those of these claims that nobody needs; one that somebody has changed meanwhile is let alone. Throws ApiError. */
  async tidy(claims: readonly Lease[], signal: AbortSignal): Promise<void> {
    for (const lease of claims) {
      if ((await this.#options.isNeeded(lease)) !== false) continue;
      try {
        await this.release([lease], withoutMarks, signal);
      } catch (err) {
        if (!isConflict(err)) throw err;
      }
    }
  }
}

/** As no namespace has it. */
function withoutMarks({ labels = {}, annotations = {} }: ClaimMarks): ClaimMarks {
  const { [CELL_TARGET_LABEL]: _target, [CELL_WORKLOAD_LABEL]: _workload, ...otherLabels } = labels;
  const { [CELL_WORKLOAD_SECRETS_ANNOTATION]: _secrets, ...otherAnnotations } = annotations;
  return { labels: otherLabels, annotations: withMembers(otherAnnotations, []) };
}

/** Namespaces that have a target cluster together. */
export function membersIn({ annotations = {} }: ClaimMarks): readonly string[] {
  return Object.keys(annotations).flatMap((key) => (key.startsWith(MEMBER) ? [key.slice(MEMBER.length)] : []));
}

/** The same annotations with just these. */
export function withMembers(
  annotations: Readonly<Record<string, string>>,
  members: readonly string[],
): Record<string, string> {
  const others = Object.entries(annotations).filter(([key]) => !key.startsWith(MEMBER));
  return Object.fromEntries([...others, ...members.toSorted().map((name) => [`${MEMBER}${name}`, ''] as const)]);
}

function remarked({ metadata }: Lease, { labels, annotations }: ClaimMarks): ObjectMeta {
  return { ...metadata, ...(labels && { labels }), ...(annotations && { annotations }) };
}
