import { POOL_LEASE_NAMESPACE } from '../../apis/ironcore/machine-pool.ts';
import type { Lease } from '../../apis/wire.ts';
import { toMicroTimestamp, type Clock } from '../../clock/clock.ts';
import type { Reader, Writer } from '../../kube/client.ts';
import { ignoreNotFound } from '../../kube/errors.ts';
import { mergePatch, mergePatchIfUnchanged } from '../../kube/patch.ts';
import { leases } from '../../kube/resource.ts';
import { LEASE_SECONDS, tenureOf, type ForeignTenure } from './pool-tenure.ts';

/** What Leases of pools are kept with. */
export interface PoolLeaseDeps {
  readonly reader: Pick<Reader, 'get'>;
  readonly writer: Pick<Writer, 'create' | 'patch'>;
  readonly clock: Clock;
  /** Of all processes of which one leads at a time. */
  readonly family: string;
  /** Different for each start of the process. */
  readonly identity: string;
}

/** Shows by Leases that pools are looked after, also while their runtimes do not answer. Nobody leads by them. */
export class PoolLeases {
  readonly #deps: PoolLeaseDeps;
  readonly #foreign = new Map<string, ForeignTenure>();
  readonly #held = new Set<string>();

  constructor(deps: PoolLeaseDeps) {
    this.#deps = deps;
  }

  /** Renews the Lease of a pool; undefined: done. Resolves with its holder when somebody else renews it: then it is left to them. */
  async renew(pool: string, signal: AbortSignal): Promise<string | undefined> {
    const { reader, writer, clock, family, identity } = this.#deps;
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
      await writer.create('create', leases, lease, { signal });
      return undefined;
    }
    const isOurs = found.spec?.holderIdentity?.startsWith(ours) === true;
    const isSame = found.spec?.holderIdentity === holderIdentity;
    const change = { spec: { ...spec, ...(!isSame && { acquireTime: renewTime }) } };
    // Of two that take over what has ended one wins.
    const patch = isOurs ? mergePatch<Lease>(found, change) : mergePatchIfUnchanged<Lease>(found, change);
    await writer.patch('change', leases, ref, patch, { signal }).catch(ignoreNotFound);
    return undefined;
  }
}
