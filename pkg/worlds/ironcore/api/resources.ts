import { COMPUTE_GROUP, IPAM_GROUP, IRONCORE_VERSION, NETWORKING_GROUP, STORAGE_GROUP } from './group.ts';
import type { IronCoreMachine } from './machine.ts';
import type { IronCoreMachineClass } from './machine-class.ts';
import type { IronCoreMachinePool } from './machine-pool.ts';
import type { IronCoreNetwork, IronCoreNetworkInterface, IronCorePrefix } from './network-interface.ts';
import type { IronCoreVolume } from './volume.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { defineResource, type Resource, type ShippedFiles } from '../../../apis/resource.ts';

/** A kind of a group, with the files that this repository ships for it. */
const kindOf =
  (group: string, shipped?: ShippedFiles) =>
  <T extends KubeObject>(plural: string, kind: string, namespaced = true): Resource<T> =>
    defineResource<T>(group, IRONCORE_VERSION, plural, kind, namespaced, shipped);

const compute = kindOf(COMPUTE_GROUP, { definitions: 'crds/ironcore', roles: 'deploy/rbac/ironcore-*.yaml' });
const storage = kindOf(STORAGE_GROUP, { definitions: 'crds/ironcore' });
const ofInterfaces = kindOf(NETWORKING_GROUP, { definitions: 'crds/ironcore' });

export const ironCoreMachines = compute<IronCoreMachine>('machines', 'Machine');
export const ironCoreMachinePools = compute<IronCoreMachinePool>('machinepools', 'MachinePool', false);
export const ironCoreMachineClasses = compute<IronCoreMachineClass>('machineclasses', 'MachineClass', false);
export const ironCoreVolumes = storage<IronCoreVolume>('volumes', 'Volume');
export const ironCoreNetworkInterfaces = ofInterfaces<IronCoreNetworkInterface>(
  'networkinterfaces',
  'NetworkInterface',
);
export const ironCoreNetworks = kindOf(NETWORKING_GROUP)<IronCoreNetwork>('networks', 'Network');
export const ironCorePrefixes = kindOf(IPAM_GROUP)<IronCorePrefix>('prefixes', 'Prefix');
