import { POOL_LEASE_NAMESPACE } from '../../apis/ironcore/machine-pool.ts';
import type { Lease } from '../../apis/wire.ts';
import { toMicroTimestamp, type Clock } from '../../clock/clock.ts';
import type { Reader, Writer } from '../../kube/client.ts';
import { ignoreNotFound } from '../../kube/errors.ts';
import { mergePatch } from '../../kube/patch.ts';
import { leases } from '../../kube/resource.ts';

/** What Leases of pools are kept with. */
export interface PoolLeaseDeps {
  readonly reader: Pick<Reader, 'get'>;
  readonly writer: Pick<Writer, 'create' | 'patch'>;
  readonly clock: Clock;
  /** Different for each start of the process. */
  readonly identity: string;
}

/** Four renewals. */
const DURATION_SECONDS = 40;

/** Shows by Leases that pools are looked after, also while their runtimes do not answer. Nobody leads by them. */
export class PoolLeases {
  readonly #deps: PoolLeaseDeps;

  constructor(deps: PoolLeaseDeps) {
    this.#deps = deps;
  }

  /** Renews the Lease of a pool, whoever had it: the one who serves the pool is the one who leads. */
  async renew(pool: string, signal: AbortSignal): Promise<void> {
    const { reader, writer, clock, identity } = this.#deps;
    const ref = { namespace: POOL_LEASE_NAMESPACE, name: pool };
    const found = await reader.get(leases, ref, { signal }).catch(ignoreNotFound);
    const renewTime = toMicroTimestamp(clock.now());
    const holderIdentity = `${pool}_${identity}`;
    const spec = { holderIdentity, leaseDurationSeconds: DURATION_SECONDS, renewTime };
    if (found === undefined) {
      const lease = { metadata: ref, spec: { ...spec, acquireTime: renewTime } };
      await writer.create('create', leases, lease, { signal });
      return;
    }
    const isOurs = found.spec?.holderIdentity === holderIdentity;
    const patch = mergePatch<Lease>(found, { spec: { ...spec, ...(!isOurs && { acquireTime: renewTime }) } });
    await writer.patch('change', leases, ref, patch, { signal }).catch(ignoreNotFound);
  }
}
