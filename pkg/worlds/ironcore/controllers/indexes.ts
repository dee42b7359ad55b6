import { networkInterfaceNameOf, volumeNameOf, type IronCoreMachine } from '../api/machine.ts';
import type { IronCoreNetworkInterface } from '../api/network-interface.ts';
import type { OwnedReference } from '../api/reference.ts';
import type { IronCoreVolume } from '../api/volume.ts';
import { CLAIMED_FOR_POOL_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { controllerOf, isBeingDeleted, keyBeside, type KubeObject } from '../../../apis/meta.ts';
import type { IndexFunctions } from '../../../kube/cache/store.ts';
import { present } from '../../../operator/indexes/present.ts';

/** Value of index `unplaced` for Machines of whatever class. */
export const ANY_CLASS = '';

/** Indexes of Machines of IronCore: by class, by pool, by what they name (keys); those that have no pool and are to get one by class, and all of them. */
export const IRONCORE_MACHINE_INDEXES = {
  class: ({ spec }) => [spec.machineClassRef.name],
  pool: ({ spec }) => present(spec.machinePoolRef?.name),
  volume: (machine) =>
    (machine.spec.volumes ?? []).flatMap((entry) => keyOfNamed(machine, volumeNameOf(machine, entry))),
  networkInterface: (machine) =>
    (machine.spec.networkInterfaces ?? []).flatMap((entry) =>
      keyOfNamed(machine, networkInterfaceNameOf(machine, entry)),
    ),
  secret: (machine) => keyOfNamed(machine, machine.spec.ignitionRef?.name),
  unplaced: (machine) =>
    machine.spec.machinePoolRef === undefined && !isBeingDeleted(machine)
      ? [ANY_CLASS, machine.spec.machineClassRef.name]
      : [],
} satisfies IndexFunctions<IronCoreMachine>;

/**
 * Indexes of Volumes of IronCore: by the UIDs of the Machine that has claimed it and of the one that it was made for, by the pool of the former,
 * and by the Secrets that it is reached and decrypted with (keys).
 */
export const IRONCORE_VOLUME_INDEXES = {
  user: (volume) => usersOf(volume, volume.spec?.claimRef),
  claimedForPool: poolOfClaim,
  secret: (volume) =>
    [volume.status?.access?.secretRef?.name, volume.spec?.encryption?.secretRef?.name].flatMap((name) =>
      keyOfNamed(volume, name),
    ),
} satisfies IndexFunctions<IronCoreVolume>;

/** The same of its NetworkInterfaces. */
export const IRONCORE_NETWORK_INTERFACE_INDEXES = {
  user: (networkInterface) => usersOf(networkInterface, networkInterface.spec?.machineRef),
  claimedForPool: poolOfClaim,
} satisfies IndexFunctions<IronCoreNetworkInterface>;

function poolOfClaim({ metadata }: KubeObject): string[] {
  return present(metadata.annotations?.[CLAIMED_FOR_POOL_ANNOTATION]);
}

function usersOf(object: KubeObject, claim: OwnedReference | undefined): string[] {
  return [...new Set([...present(claim?.uid), ...present(controllerOf(object)?.uid)])];
}

function keyOfNamed(object: KubeObject, name: string | undefined): string[] {
  return name === undefined ? [] : [keyBeside(object, name)];
}
