import type { KubeObject } from '../../../apis/meta.ts';
import type { IronCoreCondition, Reference } from './reference.ts';
import type { Toleration } from './taint.ts';

export interface IronCoreMachine extends KubeObject {
  spec: IronCoreMachineSpec;
  status?: IronCoreMachineStatus;
}

export interface IronCoreMachineSpec {
  readonly machineClassRef: Reference;
  /** Labels that its pool must have, when the scheduler chooses it. */
  readonly machinePoolSelector?: Readonly<Record<string, string>>;
  /** Set once. Absent: the scheduler chooses. */
  readonly machinePoolRef?: Reference;
  /** Of older documents: image of the first disk. */
  readonly image?: string;
  readonly power?: 'On' | 'Off';
  readonly volumes?: readonly VolumeEntry[];
  readonly networkInterfaces?: readonly NetworkInterfaceEntry[];
  /** Without a key: `ignition.yaml`. */
  readonly ignitionRef?: { readonly name: string; readonly key?: string };
  readonly efiVars?: readonly { readonly name: string; readonly uuid: string; readonly value: string }[];
  readonly tolerations?: readonly Toleration[];
  readonly guestConfig?: { readonly hostname?: string };
}

/** A volume of a machine: exactly one source. The first one is the root disk. */
export interface VolumeEntry {
  readonly name: string;
  readonly device?: string;
  readonly volumeRef?: Reference;
  readonly emptyDisk?: { readonly sizeLimit?: string | number };
  readonly localDisk?: { readonly sizeLimit?: string | number; readonly image?: string };
  readonly ephemeral?: { readonly volumeTemplate: object };
}

/** A network interface of a machine: exactly one source. */
export interface NetworkInterfaceEntry {
  readonly name: string;
  readonly networkInterfaceRef?: Reference;
  readonly ephemeral?: { readonly networkInterfaceTemplate: object };
}

export interface IronCoreMachineStatus {
  /** `<runtime>://<id>`. */
  readonly machineID?: string;
  readonly observedGeneration?: number;
  readonly conditions?: readonly IronCoreCondition[];
  readonly state?: string;
  readonly volumes?: readonly (AttachmentStatus & { readonly volumeRef?: Reference })[];
  readonly networkInterfaces?: readonly (AttachmentStatus & { readonly networkInterfaceRef?: Reference })[];
}

/** How far an entry of the spec is attached. */
export interface AttachmentStatus {
  readonly name: string;
  readonly handle?: string;
  readonly state?: string;
  readonly lastStateTransitionTime?: string;
}

/** Name of the Volume of an entry; undefined: it is a disk of the pool. */
export function volumeNameOf({ metadata }: IronCoreMachine, entry: VolumeEntry): string | undefined {
  return entry.ephemeral === undefined ? entry.volumeRef?.name : `${metadata.name}-${entry.name}`;
}

export function networkInterfaceNameOf({ metadata }: IronCoreMachine, entry: NetworkInterfaceEntry): string {
  return entry.networkInterfaceRef?.name ?? `${metadata.name}-${entry.name}`;
}
