import type { IronCoreNetworkInterface } from '../../api/network-interface.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import type { OwnedReference } from '../../api/reference.ts';
import { GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { keyBeside, keyOf } from '../../../../apis/meta.ts';
import type { Lister } from '../../../../kube/cache/lister.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import type { Writer } from '../../../../kube/client/client.ts';
import { ignoreNotFound, isDenial, type ApiError } from '../../../../kube/client/errors.ts';
import type { Resource } from '../../../../apis/resource.ts';
import { ironCoreMachines, ironCoreNetworkInterfaces, ironCoreVolumes } from '../../api/resources.ts';
import { releaseOf } from '../../../../controllers/vms/orphan-release.ts';
import { resourceClaimantOf, releaseClaim, type Used } from './claiming.ts';
import type { HeldClaim, HeldClaims } from './held-claims.ts';
import { volumeHandle } from './kept-uses.ts';
import { UID_LABEL } from './keys.ts';
import { OWNERLESS_MS } from './ownerless.ts';
import type { Shown } from './sightings.ts';
import { CREATION_MS } from './uncertainty.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

type Shared =
  | 'machines'
  | 'pools'
  | 'volumes'
  | 'networkInterfaces'
  | 'reader'
  | 'writer'
  | 'metrics'
  | 'clock'
  | 'log';

interface Deps extends Pick<IronCoreCollaborators, Shared | 'departures' | 'sightings'> {
  readonly held: Pick<HeldClaims, 'report' | 'leave'>;
}

/**
 * Gives back what Machines have claimed that went without giving it back: their finalizer was taken away. Only claims that were made here
 * for Machines of a pool that is served here. The runtime must not show that anything uses them, for as long as a creation without an
 * answer may still be carried out, and the API server itself must say that the Machine is gone.
 *
 * That a runtime shows nothing is what one that lost its state does, too, or another one at its address. So the machine must have been seen
 * going, or there by the connection that does not show it any more, or none was ever asked for. What nobody vouches for is held and told,
 * until somebody gives it up.
 */
export class LeftClaims {
  readonly #deps: Deps;
  /** By pool: since when each claim has been of nobody, by the UIDs of the object and of the Machine. */
  readonly #sinceMs = new Map<string, ReadonlyMap<string, number>>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * One look, with all machines at the runtime of the pool. Resolves with the time until the next one is due. Throws ApiError; what the API
   * server refuses to have freed holds up nothing else.
   */
  async release(pool: string, { machines, connection }: Shown, signal: AbortSignal): Promise<number> {
    const { volumes, networkInterfaces } = this.#deps;
    const uses = usesOf(machines);
    const left = [
      ...this.#leftOf(volumes, pool, uses, handleOfVolume).map((object) => leftOne(ironCoreVolumes, object)),
      ...this.#leftOf(networkInterfaces, pool, uses, networkInterfaceHandle).map((object) =>
        leftOne(ironCoreNetworkInterfaces, object),
      ),
    ];
    const nowMs = this.#deps.clock.monotonicMs();
    const before = this.#sinceMs.get(pool);
    const sinceMs = new Map(left.map(({ key }) => [key, before?.get(key) ?? nowMs]));
    this.#sinceMs.set(pool, sinceMs);
    const waits = [Infinity];
    const held: LeftOne[] = [];
    const refused: ApiError[] = [];
    for (const one of left) {
      const waitMs = this.#deps.departures.machineOf(one.claim.uid) === undefined ? CREATION_MS : OWNERLESS_MS;
      const leftMs = (sinceMs.get(one.key) ?? nowMs) + waitMs - nowMs;
      if (leftMs > 0) waits.push(leftMs);
      else if (this.#isGone(pool, one, connection)) {
        await this.#release(pool, one, signal).catch((err: unknown) => {
          if (!isDenial(err)) throw err;
          refused.push(err);
        });
      } else held.push(one);
    }
    this.#deps.metrics.claimsHeld.set({ pool }, held.length);
    const ofPool = this.#deps.pools.get(pool);
    if (ofPool !== undefined)
      await this.#deps.held.report(
        ofPool,
        held.map(({ kind, object, claim }) => ({ kind, object, machine: claim.name })),
        signal,
      );
    const [refusal] = refused;
    if (refusal !== undefined) throw refusal;
    return Math.min(...waits);
  }

  /** Somebody else serves the pool. Throws ApiError. */
  async leave(poolName: string, signal: AbortSignal): Promise<void> {
    this.#sinceMs.delete(poolName);
    this.#deps.metrics.claimsHeld.remove({ pool: poolName });
    const pool = this.#deps.pools.get(poolName);
    if (pool !== undefined) await this.#deps.held.leave(pool, signal);
  }

  /** Whether anything but the silence of the runtime says that the machine of a Machine that is gone is gone, too. */
  #isGone(pool: string, { claim: { uid }, object }: LeftOne, connection: number | undefined): boolean {
    const { pools, departures, sightings, clock } = this.#deps;
    const isGivenUp = [pools.get(pool), object].some(
      (one) => one !== undefined && releaseOf(one, clock.now(), GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION) === 'given',
    );
    if (isGivenUp || departures.wentWithoutMachine(uid)) return true;
    const id = departures.machineOf(uid);
    const wasSeen = sightings.vouchesFor(pool, { uid }, connection);
    // One that lost its label is known by its id.
    return wasSeen || (id !== undefined && sightings.vouchesFor(pool, { id }, connection));
  }

  #leftOf<T extends Used>(
    all: Lister<T>,
    pool: string,
    { uids, handles }: Uses,
    handleOf: (object: T) => string | undefined,
  ): readonly T[] {
    return all.byIndex('claimedForPool', pool).filter((object) => {
      const claim = resourceClaimantOf(object);
      if (claim === undefined || uids.has(claim.uid)) return false;
      if (this.#deps.machines.get(keyBeside(object, claim.name))?.metadata.uid === claim.uid) return false;
      // Whatever has lost its labels, or is of somebody else.
      const handle = handleOf(object);
      return handle === undefined || !handles.has(handle);
    });
  }

  /** The cache may be late: the API server is asked before anything is given to somebody else. */
  async #release(pool: string, { object, claim, free }: LeftOne, signal: AbortSignal): Promise<void> {
    const { reader, writer, log } = this.#deps;
    const { namespace = '' } = object.metadata;
    const live = await reader.get(ironCoreMachines, { namespace, name: claim.name }, { signal }).catch(ignoreNotFound);
    if (live?.metadata.uid === claim.uid) return;
    await free(writer, signal);
    const key = keyOf(object);
    log.warn({ pool, key, machine: claim.name }, 'released a claim of a deleted machine');
  }
}

/** A claim that is of nobody who is there. */
interface LeftOne {
  readonly kind: HeldClaim['kind'];
  readonly key: string;
  readonly object: Used;
  readonly claim: OwnedReference;
  readonly free: (writer: Pick<Writer, 'patch'>, signal: AbortSignal) => Promise<void>;
}

function leftOne<T extends Used>(resource: Resource<T>, object: T): LeftOne {
  const claim = resourceClaimantOf(object) ?? { name: '', uid: '' };
  const free: LeftOne['free'] = (writer, signal) => releaseClaim(writer, claim.uid, resource, object, signal);
  const kind = resource.kind === 'Volume' ? 'Volume' : 'NetworkInterface';
  return { kind, key: `${object.metadata.uid} ${claim.uid}`, object, claim, free };
}

interface Uses {
  /** UIDs of their Machines. */
  readonly uids: ReadonlySet<string>;
  readonly handles: ReadonlySet<string>;
}

function usesOf(machines: readonly RuntimeMachine[]): Uses {
  return {
    uids: new Set(machines.map(({ metadata }) => metadata.labels[UID_LABEL] ?? '')),
    handles: new Set(
      machines.flatMap(({ spec, status }) => [
        ...spec.volumes.flatMap(({ connection }) => (connection === undefined ? [] : [volumeHandle(connection)])),
        ...status.networkInterfaces.map(({ handle }) => handle),
      ]),
    ),
  };
}

function handleOfVolume({ status }: IronCoreVolume): string | undefined {
  return status?.access && volumeHandle(status.access);
}

function networkInterfaceHandle({ spec }: IronCoreNetworkInterface): string | undefined {
  return spec?.providerID;
}
