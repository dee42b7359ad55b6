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
import { handlesOfVolume, leavingOf, volumeHandle } from './kept-uses.ts';
import type { PassCollaborators } from './machine-pass.ts';

export type Used = IronCoreVolume | IronCoreNetworkInterface;

export type ClaimDeps = Pick<PassCollaborators, 'classes' | 'volumes' | 'networkInterfaces' | 'writer' | 'reports'>;

/**
 * Takes what the Machine names, makes what is to be made for it, and lets go of what neither it nor `existing`, its machines, use any
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
  const names = (entries: readonly { readonly name: string }[] = []): Set<string> =>
    new Set(entries.map(({ name }) => name));
  const [volumeNames, nicNames] = [names(spec.volumes), names(spec.networkInterfaces)];
  const uses = (kind: 'volumes' | 'networkInterfaces', named: Set<string>): boolean =>
    existing.some((one) => [...one.spec[kind], ...one.status[kind]].some(({ name }) => !named.has(name)));
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
    claimable(observed, volumes, isCertain && !hasFormer && !uses('volumes', volumeNames), isAttached),
  );
  await carryOutClaims(deps, observed, ironCoreVolumes, ofVolumes, signal);
  const mayRelease = isCertain && !uses('networkInterfaces', nicNames);
  const ofNICs = networkInterfaceClaims(observed, claimable(observed, networkInterfaces, mayRelease));
  await carryOutClaims(deps, observed, ironCoreNetworkInterfaces, ofNICs, signal);
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
