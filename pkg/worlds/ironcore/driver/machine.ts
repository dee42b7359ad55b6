import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import type { IronCoreMachine, IronCoreMachineSpec, VolumeEntry } from '../api/machine.ts';
import type { Secret } from '../../../apis/wire.ts';
import type { New } from '../../../kube/client/client.ts';
import { apiVersionOf } from '../../../kube/client/resource.ts';
import { ironCoreMachines } from '../api/resources.ts';
import type { MachineIdentity } from '../../../drivers/machine-identity.ts';
import { invalid } from '../../../drivers/spec-fields.ts';
import type { IronCoreProviderSpec } from './provider-spec.ts';
import { tagsOf } from './tags.ts';

/** Labels of pools that say where they are. */
const ZONE_LABEL = 'topology.ironcore.dev/zone';
const REGION_LABEL = 'topology.ironcore.dev/region';
/** The one network interface, and the one volume. */
const INTERFACE_NAME = 'nic';
const VOLUME_NAME = 'root';
const PREFIX_LENGTH = 32;

export interface MachinePlan {
  readonly machine: MachineIdentity;
  readonly machineClass: MachineClass;
  readonly spec: IronCoreProviderSpec;
  readonly namespace: string;
  /** Whether there is a pool that has the name of the zone. */
  readonly isZoneAPool: boolean;
}

/** The zone of a class; undefined when it says none. */
export function classZoneOf({ nodeTemplate }: MachineClass): string | undefined {
  return nodeTemplate?.zone === '' ? undefined : nodeTemplate?.zone;
}

/** The Machine of IronCore, as Gardener's provider makes it, with our tags. Throws InvalidArgument for a class without instance type. */
export function ironCoreMachineFor(plan: MachinePlan): New<IronCoreMachine> {
  const { machine, machineClass, spec, namespace, isZoneAPool } = plan;
  const { instanceType = '', region = '' } = machineClass.nodeTemplate ?? {};
  if (instanceType === '') {
    throw invalid('nodeTemplate.instanceType: must be set to the name of the MachineClass of IronCore');
  }
  const { labels, annotations } = tagsOf(machine, machineClass.metadata.name);
  return {
    metadata: { namespace, name: machine.name, labels: { ...spec.labels, ...labels }, annotations },
    spec: {
      machineClassRef: { name: instanceType },
      ...placeOf(classZoneOf(machineClass), region, isZoneAPool),
      power: 'On',
      networkInterfaces: [
        { name: INTERFACE_NAME, ephemeral: { networkInterfaceTemplate: networkInterfaceTemplateOf(spec) } },
      ],
      ignitionRef: { name: machine.name, key: spec.ignitionSecretKey },
      volumes: [rootVolumeOf(spec)],
    },
  };
}

function placeOf(
  zone: string | undefined,
  region: string,
  isZoneAPool: boolean,
): Pick<IronCoreMachineSpec, 'machinePoolRef' | 'machinePoolSelector'> {
  if (zone !== undefined && isZoneAPool) return { machinePoolRef: { name: zone } };
  const selector = {
    ...(zone === undefined ? {} : { [ZONE_LABEL]: zone }),
    ...(region === '' ? {} : { [REGION_LABEL]: region }),
  };
  return Object.keys(selector).length === 0 ? {} : { machinePoolSelector: selector };
}

function networkInterfaceTemplateOf({ labels, networkName, prefixName }: IronCoreProviderSpec): object {
  const prefix = { spec: { prefixLength: PREFIX_LENGTH, parentRef: { name: prefixName } } };
  return {
    metadata: { labels },
    spec: {
      networkRef: { name: networkName },
      ipFamilies: ['IPv4'],
      ips: [{ ephemeral: { prefixTemplate: prefix } }],
    },
  };
}

function rootVolumeOf({ image, rootDisk }: IronCoreProviderSpec): VolumeEntry {
  if (rootDisk === undefined) return { name: VOLUME_NAME, localDisk: { image } };
  const { size, volumeClassName, volumePoolName } = rootDisk;
  return {
    name: VOLUME_NAME,
    ephemeral: {
      volumeTemplate: {
        spec: {
          volumeClassRef: { name: volumeClassName },
          ...(volumePoolName === undefined ? {} : { volumePoolRef: { name: volumePoolName } }),
          resources: { storage: size },
          dataSource: { osImage: { image } },
        },
      },
    },
  };
}

/** The Secret with the Ignition config. It goes with its Machine, and has its name. */
export function ignitionSecretFor(
  owner: IronCoreMachine,
  machine: MachineIdentity,
  className: string,
  { ignitionSecretKey }: IronCoreProviderSpec,
  ignition: string,
): New<Secret> {
  const { name, namespace = '', uid } = owner.metadata;
  const ownerReferences = [{ apiVersion: apiVersionOf(ironCoreMachines), kind: ironCoreMachines.kind, name, uid }];
  return {
    metadata: { name, namespace, ...tagsOf(machine, className), ownerReferences },
    data: { [ignitionSecretKey]: Buffer.from(ignition).toString('base64') },
  };
}

export type Progress =
  | { readonly kind: 'running'; readonly why: string }
  /** No pool has it: it may wait for one for ever. */
  | { readonly kind: 'unplaced'; readonly why: string }
  /** A pool makes it. */
  | { readonly kind: 'starting'; readonly why: string }
  | { readonly kind: 'going'; readonly why: string };

/** States in which the machine has been made, whether it runs or not. */
const MADE = new Set(['Running', 'Shutdown']);
const GOING = new Set(['Terminating', 'Terminated']);

/** How far a Machine of IronCore has come, with what it says of itself. */
export function ironCoreProgressOf({ metadata, spec, status }: IronCoreMachine): Progress {
  const { state = '', conditions = [] } = status ?? {};
  const told = conditions
    .filter((condition) => condition.status !== 'True')
    .map(
      ({ type, status: value, reason, message }) =>
        `${type} is ${value}: ${[reason, message].filter(Boolean).join(': ')}`,
    );
  const why = [`state ${state === '' ? 'none yet' : state}`, ...told].join('; ');
  if (metadata.deletionTimestamp !== undefined || GOING.has(state)) return { kind: 'going', why };
  if (MADE.has(state)) return { kind: 'running', why };
  return { kind: (spec.machinePoolRef?.name ?? '') === '' ? 'unplaced' : 'starting', why };
}
