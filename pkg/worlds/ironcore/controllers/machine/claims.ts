import {
  networkInterfaceNameOf,
  volumeNameOf,
  type IronCoreMachine,
  type NetworkInterfaceEntry,
  type VolumeEntry,
} from '../../api/machine.ts';
import type { IronCoreMachineClass } from '../../api/machine-class.ts';
import type { IronCoreNetworkInterface } from '../../api/network-interface.ts';
import type { OwnedReference } from '../../api/reference.ts';
import type { IronCoreVolume } from '../../api/volume.ts';
import { COMPUTE_GROUP, IRONCORE_VERSION } from '../../api/group.ts';
import { CLAIMED_FOR_POOL_ANNOTATION } from '../../../../apis/machine/v1alpha1/labels.ts';
import { controllerOf, isBeingDeleted, type KubeObject } from '../../../../apis/meta.ts';
import type { New } from '../../../../kube/client/client.ts';
import { EPHEMERAL_ANNOTATION, EPHEMERAL_MANAGER } from './keys.ts';

/** What is done about the objects of one kind that a Machine uses. */
export interface ResourceClaims<T extends KubeObject> {
  /** Free objects that become its own. */
  readonly claim: readonly T[];
  /** Its own objects that do not say for which pool they were claimed: claimed by somebody else, or by an earlier version. */
  readonly note: readonly T[];
  readonly release: readonly T[];
  /** Objects that are missing and are made for it. */
  readonly create: readonly New<T>[];
  /** Objects that were made for it, and that it no longer uses. */
  readonly delete: readonly T[];
}

export interface Claimable<T extends KubeObject> {
  readonly get: (name: string) => T | undefined;
  /** Those that it has claimed, and those that were made for it, but for what its machine is known to have. */
  readonly own: readonly T[];
  /** Whether the machine at the runtime has nothing any more that its Machine does not name. */
  readonly mayRelease: boolean;
}

export function volumeClaims(
  machine: IronCoreMachine,
  machineClass: IronCoreMachineClass | undefined,
  volumes: Claimable<IronCoreVolume>,
): ResourceClaims<IronCoreVolume> {
  const entries = machine.spec.volumes ?? [];
  return claims(machine, volumes, {
    named: entries.flatMap((entry) => {
      const name = volumeNameOf(machine, entry);
      return name === undefined ? [] : [{ name, made: newVolume(machine, entry, name, machineClass) }];
    }),
    claimOf: ({ spec }) => spec?.claimRef,
  });
}

export function networkInterfaceClaims(
  machine: IronCoreMachine,
  networkInterfaces: Claimable<IronCoreNetworkInterface>,
): ResourceClaims<IronCoreNetworkInterface> {
  const entries = machine.spec.networkInterfaces ?? [];
  return claims(machine, networkInterfaces, {
    named: entries.map((entry) => {
      const name = networkInterfaceNameOf(machine, entry);
      return { name, made: newNetworkInterface(machine, entry, name) };
    }),
    claimOf: ({ spec }) => spec?.machineRef,
  });
}

/** By which a Machine holds what it uses. */
export function claimBy({ metadata }: IronCoreMachine): OwnedReference {
  return { name: metadata.name, uid: metadata.uid };
}

interface Kind<T extends KubeObject> {
  /** What the Machine names, with what is made where it is missing; undefined: nothing is. */
  readonly named: readonly { readonly name: string; readonly made: New<T> | undefined }[];
  readonly claimOf: (object: T) => OwnedReference | undefined;
}

function claims<T extends KubeObject>(
  machine: IronCoreMachine,
  { get, own, mayRelease }: Claimable<T>,
  { named, claimOf }: Kind<T>,
): ResourceClaims<T> {
  const { uid } = machine.metadata;
  const pool = machine.spec.machinePoolRef?.name;
  const names = new Set(named.map(({ name }) => name));
  const left = mayRelease ? own.filter(({ metadata }) => !names.has(metadata.name)) : [];
  const isMade = (object: T): boolean =>
    controllerOf(object)?.uid === uid && object.metadata.annotations?.[EPHEMERAL_ANNOTATION] === EPHEMERAL_MANAGER;
  return {
    claim: named.flatMap(({ name, made }) => {
      const found = get(name);
      if (found === undefined || isBeingDeleted(found) || claimOf(found) !== undefined) return [];
      // What was not made for it is never taken for what should be.
      return made === undefined || isMade(found) ? [found] : [];
    }),
    note: named.flatMap(({ name }) => {
      const found = get(name);
      if (found === undefined || claimOf(found)?.uid !== uid) return [];
      // What was made for it goes with it.
      return isMade(found) || found.metadata.annotations?.[CLAIMED_FOR_POOL_ANNOTATION] === pool ? [] : [found];
    }),
    create: named.flatMap(({ name, made }) => (made === undefined || get(name) !== undefined ? [] : [made])),
    release: left.filter((object) => !isMade(object) && claimOf(object)?.uid === uid),
    delete: left.filter((object) => isMade(object) && !isBeingDeleted(object)),
  };
}

const ZONE_LABELS = ['topology.ironcore.dev/region', 'topology.ironcore.dev/zone'];
const ARCHITECTURE_LABEL = 'common.ironcore.dev/architecture';

interface Template {
  readonly metadata?: { readonly labels?: Record<string, string>; readonly annotations?: Record<string, string> };
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** Near the Machine, and of its architecture, where the template says nothing else. */
function newVolume(
  machine: IronCoreMachine,
  { name: entryName, ephemeral }: VolumeEntry,
  name: string,
  machineClass: IronCoreMachineClass | undefined,
): New<IronCoreVolume> | undefined {
  if (ephemeral === undefined) return undefined;
  const { spec = {}, ...template } = ephemeral.volumeTemplate as Template;
  const selector = Object.entries(machine.spec.machinePoolSelector ?? {}).filter(([key]) => ZONE_LABELS.includes(key));
  const { volumePoolSelector } = spec as { volumePoolSelector?: Readonly<Record<string, string>> };
  const near = { ...Object.fromEntries(selector), ...volumePoolSelector };
  const isFirst = machine.spec.volumes?.[0]?.name === entryName;
  const made = withArchitecture(isFirst ? withImage(spec, machine.spec.image) : spec, machineClass);
  // Whatever the template says, of which only some is known here.
  const whole = {
    ...made,
    ...(Object.keys(near).length > 0 && { volumePoolSelector: near }),
  } as NonNullable<IronCoreVolume['spec']>;
  return { ...madeFor(machine, name, template), spec: whole };
}

/** The first disk is of the image that the Machine names, where its template names no source. */
function withImage(spec: Readonly<Record<string, unknown>>, image = ''): Readonly<Record<string, unknown>> {
  const { dataSource = {} } = spec as { dataSource?: object };
  return image === '' || Object.keys(dataSource).length > 0 ? spec : { ...spec, dataSource: { osImage: { image } } };
}

function withArchitecture(
  spec: Readonly<Record<string, unknown>>,
  machineClass: IronCoreMachineClass | undefined,
): Readonly<Record<string, unknown>> {
  const architecture = machineClass?.metadata.labels?.[ARCHITECTURE_LABEL];
  const { dataSource } = spec as { dataSource?: { osImage?: { architecture?: string } } };
  if (architecture === undefined || dataSource?.osImage === undefined) return spec;
  return { ...spec, dataSource: { ...dataSource, osImage: { architecture, ...dataSource.osImage } } };
}

function newNetworkInterface(
  machine: IronCoreMachine,
  { ephemeral }: NetworkInterfaceEntry,
  name: string,
): New<IronCoreNetworkInterface> | undefined {
  if (ephemeral === undefined) return undefined;
  const { spec = {}, ...template } = ephemeral.networkInterfaceTemplate as Template;
  return { ...madeFor(machine, name, template), spec: { ...spec, machineRef: claimBy(machine) } };
}

/** Goes with its Machine. */
function madeFor(
  machine: IronCoreMachine,
  name: string,
  { metadata = {} }: Template,
): Pick<New<KubeObject>, 'metadata'> {
  const { namespace = '', name: owner, uid } = machine.metadata;
  const { labels, annotations } = metadata;
  return {
    metadata: {
      name,
      namespace,
      ...(labels !== undefined && { labels }),
      annotations: { ...annotations, [EPHEMERAL_ANNOTATION]: EPHEMERAL_MANAGER },
      ownerReferences: [
        {
          apiVersion: `${COMPUTE_GROUP}/${IRONCORE_VERSION}`,
          kind: 'Machine',
          name: owner,
          uid,
          controller: true,
          // Without blockOwnerDeletion, which some API servers let nobody write who may not change the finalizers of Machines.
        },
      ],
    },
  };
}
