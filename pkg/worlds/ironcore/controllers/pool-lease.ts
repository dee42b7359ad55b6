import { POOL_LEASE_NAMESPACE } from '../api/machine-pool.ts';
import type { Lease } from '../../../apis/wire.ts';
import { toMicroTimestamp } from '../../../base/clock/clock.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../../kube/client/patch.ts';
import { leases } from '../../../kube/client/resource.ts';
import { POOL_CLAIMS_ANNOTATION, POOL_UIDS_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { claimsNote, recordedClaims } from './pool-claims.ts';
import { recordedPoolUIDs, poolUIDsNote } from './pool-uids.ts';
import { LEASE_SECONDS, tenureOf, type ForeignTenure } from './pool-tenure.ts';
import type { IronCoreCollaborators } from './collaborators.ts';

interface Deps extends Pick<IronCoreCollaborators, 'reader' | 'writer' | 'clock' | 'claims' | 'poolUIDs'> {
  /** Of all processes of which one leads at a time. */
  readonly family: string;
  /** Different for each start of the process. */
  readonly identity: string;
}

/** Shows by Leases that pools are looked after, also while their runtimes do not answer. Nobody leads by them. */
export class PoolLeases {
  readonly #deps: Deps;
  readonly #foreign = new Map<string, ForeignTenure>();
  readonly #held = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Renews the Lease of a pool, and notes the UID that the MachinePool has; undefined: there is none. Resolves with undefined when that is
   * done, and with its holder when somebody else renews it: then it is left to them. Throws ApiError.
   */
  async renew(pool: string, uid: string | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { reader, writer, clock, poolUIDs, claims, family, identity } = this.#deps;
    const ref = { namespace: POOL_LEASE_NAMESPACE, name: pool };
    const found = await reader.get(leases, ref, { signal }).catch(ignoreNotFound);
    const ours = `${pool}_${family}_`;
    const nowMs = { monotonic: clock.monotonicMs(), wall: clock.now() };
    const [before, wasOurs] = [this.#foreign.get(pool), this.#held.has(pool)];
    const tenure = tenureOf({ lease: found, family: ours, before, wasOurs, nowMs });
    if (tenure.kind === 'other') {
      this.#foreign.set(pool, tenure.seen);
      return tenure.seen.holder;
    }
    this.#foreign.delete(pool);
    this.#held.add(pool);
    const renewTime = toMicroTimestamp(clock.now());
    const holderIdentity = `${ours}${identity}`;
    const spec = { holderIdentity, leaseDurationSeconds: LEASE_SECONDS, renewTime };
    if (found === undefined) {
      const lease = { metadata: ref, spec: { ...spec, acquireTime: renewTime } };
      const made = await writer.create('create', leases, lease, { signal });
      // By its own UID the note is known for its own: nobody knows that before.
      const known = claims.next(pool, new Map());
      const annotations = {
        [POOL_CLAIMS_ANNOTATION]: claimsNote(made, known),
        ...(uid !== undefined && { [POOL_UIDS_ANNOTATION]: poolUIDsNote(made, uid) ?? null }),
      };
      const note = mergePatch<Lease>(made, { metadata: { annotations } });
      const noted = await writer.patch('change', leases, ref, note, { signal }).catch(ignoreNotFound);
      if (noted !== undefined) claims.noted(pool, known);
      if (uid !== undefined) poolUIDs.noted(pool, [uid]);
      return undefined;
    }
    const isSame = found.spec?.holderIdentity === holderIdentity;
    const note = uid === undefined ? undefined : poolUIDsNote(found, uid);
    const known = claims.next(pool, recordedClaims(found));
    const annotations = {
      [POOL_CLAIMS_ANNOTATION]: claimsNote(found, known),
      ...(note !== undefined && { [POOL_UIDS_ANNOTATION]: note }),
    };
    const change = { metadata: { annotations }, spec: { ...spec, ...(!isSame && { acquireTime: renewTime }) } };
    // Of two that take over what has ended one wins; and what the one before has noted last is not lost.
    const patch = isSame ? mergePatch<Lease>(found, change) : mergePatchIfUnchanged<Lease>(found, change);
    const renewed = await writer.patch('change', leases, ref, patch, { signal }).catch(ignoreNotFound);
    if (renewed !== undefined) claims.noted(pool, known);
    poolUIDs.noted(pool, recordedPoolUIDs(found));
    return undefined;
  }
}
