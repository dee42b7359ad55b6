import { networkInterfaceNameOf, type IronCoreMachine } from '../../api/machine.ts';
import type { IronCoreNetworkInterface } from '../../api/network-interface.ts';
import type { OwnedReference } from '../../api/reference.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import { CLAIMED_FOR_POOL_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { keyBeside, refOf, type KubeObject } from '../../../../apis/meta.ts';
import type { Lister } from '../../../../kube/cache/lister.ts';
import type { RuntimeMachine } from '../../runtime/runtime.ts';
import type { Writer } from '../../../../kube/client/client.ts';
import { ApiError, ignoreNotFound, isAlreadyExists, isDenial } from '../../../../kube/client/errors.ts';
import { mergePatchIfUnchanged } from '../../../../kube/client/patch.ts';
import type { Resource } from '../../../../apis/resource.ts';
import { ironCoreNetworkInterfaces, ironCoreVolumes } from '../../api/resources.ts';
import { claimBy, networkInterfaceClaims, volumeClaims, type Claimable, type ResourceClaims } from './claims.ts';
import { formerNetworkInterfaces } from './decision.ts';
import type { DesiredMachine } from './desired-machine.ts';
import { handlesOfVolume, leavingOf, volumeHandle } from './kept-uses.ts';
import type { PassCollaborators } from './machine-pass.ts';
import { prefixAddressOf } from './surroundings.ts';

export type Used = IronCoreVolume | IronCoreNetworkInterface;

export type ClaimDeps = Pick<PassCollaborators, 'classes' | 'volumes' | 'networkInterfaces' | 'writer' | 'reports'>;

/**
 * Takes what the Machine names, makes what is to be made for it, and lets go of Volumes that neither it nor `existing`, its machines, use any
 * more; of nothing while it is not certain that these are all. Throws ApiError.
 */
export async function claimUsed(
  deps: ClaimDeps,
  observed: IronCoreMachine,
  existing: readonly RuntimeMachine[],
  isCertain: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { volumes, networkInterfaces, classes } = deps;
  const { spec } = observed;
  const names = new Set(spec.volumes?.map(({ name }) => name));
  const hasUnnamed = existing.some((one) =>
    [...one.spec.volumes, ...one.status.volumes].some(({ name }) => !names.has(name)),
  );
  // What an entry was before it was changed is in use until the machine has it no more.
  const hasFormer = existing.some((one) => leavingOf(one, 'volumes').length > 0);
  const isAttached = ({ status: { access } = {} }: IronCoreVolume): boolean =>
    (access?.handle ?? '') !== '' &&
    existing.some((one) =>
      one.spec.volumes.flatMap((has) => handlesOfVolume(has)).includes(volumeHandle(access ?? {})),
    );
  const ofVolumes = volumeClaims(
    observed,
    classes.get(spec.machineClassRef.name),
    claimable(observed, volumes, isCertain && !hasFormer && !hasUnnamed, isAttached),
  );
  await carryOutClaims(deps, observed, ironCoreVolumes, ofVolumes, signal);
  const ofNICs = networkInterfaceClaims(observed, claimable(observed, networkInterfaces, false));
  await carryOutClaims(deps, observed, ironCoreNetworkInterfaces, ofNICs, signal);
}

/**
 * Lets go of NetworkInterfaces that the Machine does not name any more, and that none of `existing`, all of its machines, has: they are known
 * there by their addresses only. Throws ApiError.
 */
export async function releaseNetworkInterfaces(
  deps: ClaimDeps & Pick<PassCollaborators, 'reader'>,
  observed: IronCoreMachine,
  existing: readonly RuntimeMachine[],
  desired: DesiredMachine,
  signal: AbortSignal,
): Promise<void> {
  // What an entry was before it was changed is in use until the machine has it no more.
  if (existing.some((one) => leavingOf(one, 'networkInterfaces').length > 0)) return;
  const claims = networkInterfaceClaims(observed, claimable(observed, deps.networkInterfaces, true));
  const former = formerNetworkInterfaces(existing, desired);
  const isFree = async (nic: IronCoreNetworkInterface): Promise<boolean> => {
    if (former.length === 0) return true;
    const { ips = [] } = nic.spec ?? {};
    const addresses = await Promise.all(
      ips.map(
        async ({ value }, at) =>
          value ?? (await prefixAddressOf(deps.reader, nic, `${nic.metadata.name}-${at}`, signal)),
      ),
    );
    // One that is not known may be any.
    return former.every(
      (has) => has.ips.length > 0 && addresses.every((one) => one !== undefined && !has.ips.includes(one)),
    );
  };
  const free = async (all: readonly IronCoreNetworkInterface[]): Promise<readonly IronCoreNetworkInterface[]> => {
    const are = await Promise.all(all.map(isFree));
    return all.filter((_, at) => are[at]);
  };
  const left = {
    claim: [],
    note: [],
    create: [],
    release: await free(claims.release),
    delete: await free(claims.delete),
  };
  await carryOutClaims(deps, observed, ironCoreNetworkInterfaces, left, signal);
}

/** Nothing is left at the runtime: all that it had claimed is free again. Throws ApiError. */
export async function releaseClaims(
  { volumes, networkInterfaces, writer }: Pick<ClaimDeps, 'volumes' | 'networkInterfaces' | 'writer'>,
  { metadata: { uid } }: IronCoreMachine,
  signal: AbortSignal,
): Promise<void> {
  for (const volume of volumes.byIndex('user', uid)) await releaseClaim(writer, uid, ironCoreVolumes, volume, signal);
  for (const nic of networkInterfaces.byIndex('user', uid)) {
    await releaseClaim(writer, uid, ironCoreNetworkInterfaces, nic, signal);
  }
}

/** What the runtime calls the NetworkInterfaces of a Machine is noted at them. Throws ApiError. */
export async function noteHandles(
  { networkInterfaces, writer }: Pick<ClaimDeps, 'networkInterfaces' | 'writer'>,
  observed: IronCoreMachine,
  { status }: RuntimeMachine,
  signal: AbortSignal,
): Promise<void> {
  for (const entry of observed.spec.networkInterfaces ?? []) {
    const nic = networkInterfaces.get(keyBeside(observed, networkInterfaceNameOf(observed, entry)));
    if (nic?.spec?.machineRef?.uid !== observed.metadata.uid) continue;
    const handle = status.networkInterfaces.find(({ name }) => name === entry.name)?.handle ?? '';
    if (handle === '' || handle === nic.spec.providerID) continue;
    await patchUsed(writer, ironCoreNetworkInterfaces, nic, { spec: { providerID: handle } }, signal);
  }
}

/** UIDs of the NetworkInterfaces that the Machine names, by their names. */
export function networkInterfaceUIDs(
  { networkInterfaces }: Pick<ClaimDeps, 'networkInterfaces'>,
  observed: IronCoreMachine,
): ReadonlyMap<string, string> {
  const names = (observed.spec.networkInterfaces ?? []).map((entry) => networkInterfaceNameOf(observed, entry));
  return new Map(
    names.flatMap((name) => {
      const nic = networkInterfaces.get(keyBeside(observed, name));
      return nic === undefined ? [] : [[name, nic.metadata.uid] as const];
    }),
  );
}

async function carryOutClaims<T extends Used>(
  { writer, reports }: Pick<ClaimDeps, 'writer' | 'reports'>,
  observed: IronCoreMachine,
  resource: Resource<T>,
  claims: ResourceClaims<T>,
  signal: AbortSignal,
): Promise<void> {
  const claim = claimBy(observed);
  // Whoever serves the pool lets go of it, if the Machine itself never does.
  const metadata = { annotations: { [CLAIMED_FOR_POOL_ANNOTATION]: observed.spec.machinePoolRef?.name ?? null } };
  for (const object of claims.claim) {
    const spec = resource.kind === 'Volume' ? { claimRef: claim } : { machineRef: claim, providerID: null };
    await patchUsed(writer, resource, object, { metadata, spec }, signal);
  }
  for (const object of claims.note) {
    await patchUsed(writer, resource, object, { metadata }, signal).catch((err: unknown) => {
      // It is needed only if the Machine ever loses its finalizer: the machine that there is is looked after all the same.
      if (!isDenial(err)) throw err;
      reports.refused(observed, err);
    });
  }
  for (const object of claims.create) {
    await writer.create('create', resource, object, { signal }).catch((err: unknown) => {
      if (isAlreadyExists(err)) return;
      // A quota, or a webhook: the machine that there is is looked after all the same.
      if (!ApiError.is(err, 'Forbidden', 'Invalid', 'BadRequest')) throw err;
      const { kind } = resource;
      const message = `${kind} ${object.metadata.name} cannot be created: ${err.message}`;
      reports.event(observed, 'Warning', `${kind}NotReady`, message);
    });
  }
  for (const object of claims.release) await releaseClaim(writer, observed.metadata.uid, resource, object, signal);
  for (const object of claims.delete) {
    const { uid } = object.metadata;
    await writer.delete('destroy', resource, refOf(object), { uid }, { signal }).catch(ignoreNotFound);
  }
}

/** Takes the claim of the Machine with this UID off an object, unless that has changed. Throws ApiError. */
export async function releaseClaim<T extends Used>(
  writer: Pick<Writer, 'patch'>,
  uid: string,
  resource: Resource<T>,
  object: T,
  signal: AbortSignal,
): Promise<void> {
  if (resourceClaimantOf(object)?.uid !== uid) return;
  const free = resource.kind === 'Volume' ? { claimRef: null } : { machineRef: null, providerID: null };
  const metadata = { annotations: { [CLAIMED_FOR_POOL_ANNOTATION]: null } };
  await patchUsed(writer, resource, object, { metadata, spec: free }, signal);
}

/** Unless it has changed meanwhile: two Machines that want one have one winner. */
async function patchUsed<T extends Used>(
  writer: Pick<Writer, 'patch'>,
  resource: Resource<T>,
  object: T,
  change: object,
  signal: AbortSignal,
): Promise<void> {
  const patch = mergePatchIfUnchanged<KubeObject>(object, change);
  await writer.patch('change', resource, refOf(object), patch, { signal }).catch(ignoreNotFound);
}

export function resourceClaimantOf({ spec }: Used): OwnedReference | undefined {
  const of: { claimRef?: OwnedReference; machineRef?: OwnedReference } | undefined = spec;
  return of?.claimRef ?? of?.machineRef;
}

function claimable<T extends KubeObject>(
  observed: IronCoreMachine,
  all: Lister<T>,
  mayRelease: boolean,
  isAttached: (object: T) => boolean = () => false,
): Claimable<T> {
  const own = all.byIndex('user', observed.metadata.uid).filter((object) => !isAttached(object));
  return { get: (name) => all.get(keyBeside(observed, name)), own, mayRelease };
}
