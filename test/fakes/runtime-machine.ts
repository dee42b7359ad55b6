import {
  MachineSpec,
  MachineStatus,
  Volume,
  VolumeConnection,
} from '../../pkg/worlds/ironcore/runtime/gen/ironcore/machine/v1alpha1/machine.ts';
import { ObjectMetadata } from '../../pkg/worlds/ironcore/runtime/gen/ironcore/meta/v1alpha1/meta.ts';
import type { RuntimeMachine } from '../../pkg/worlds/ironcore/runtime/runtime.ts';
import { wireMessage } from './wire-message.ts';

/** A machine at a runtime. */
export function runtimeMachine(
  metadata: Partial<ObjectMetadata>,
  spec: Partial<MachineSpec> = {},
  status: Partial<MachineStatus> = {},
): RuntimeMachine {
  return {
    metadata: wireMessage(ObjectMetadata, metadata),
    spec: wireMessage(MachineSpec, spec),
    status: wireMessage(MachineStatus, status),
  };
}

/** A volume that is elsewhere, as a machine has it. */
export function remoteVolume(name: string, connection: Partial<VolumeConnection>, device = ''): Volume {
  return wireMessage(Volume, { name, device, connection: wireMessage(VolumeConnection, connection) });
}
