import { describe, expect, test } from '@jest/globals';

import { remoteVolume, runtimeMachine } from '../../../../test/fakes/runtime-machine.ts';
import { wireMessage } from '../../../../test/fakes/wire-message.ts';
import {
  AttachNetworkInterfaceRequest,
  AttachVolumeRequest,
  CreateMachineRequest,
  CreateMachineResponse,
  DeleteMachineRequest,
  DetachNetworkInterfaceRequest,
  DetachVolumeRequest,
  ExecRequest,
  ExecResponse,
  ListEventsRequest,
  ListEventsResponse,
  ListMachinesRequest,
  ListMachinesResponse,
  Machine,
  MachineRuntimeDefinition,
  MachineState,
  NetworkInterfaceState,
  Power,
  StatusResponse,
  UpdateMachineAnnotationsRequest,
  UpdateMachinePowerRequest,
  UpdateVolumeRequest,
  VersionRequest,
  VersionResponse,
  VolumeState,
} from './gen/ironcore/machine/v1alpha1/machine.ts';
import { ObjectMetadata } from './gen/ironcore/meta/v1alpha1/meta.ts';

/*
 * Bytes of IRI, put together by hand from the numbers of its fields: a number that is wrong in our proto is wrong in client and server alike,
 * where both are generated from it. A line is the key of a field (number, kind), its length where it has one, and its value.
 */

const localDisk = { sizeBytes: 1_073_741_824n, image: { image: 'x' } };
const DISK = { name: 'd', device: 'oda', localDisk, connection: undefined };
const MACHINE: Machine = {
  metadata: { id: 'i', annotations: { a: 'b' }, labels: { l: 'm' }, generation: 3n, createdAt: 1n, deletedAt: 300n },
  spec: {
    power: Power.POWER_OFF,
    class: 'c',
    ignitionData: Buffer.from('{}\n'),
    volumes: [
      DISK,
      {
        name: 'v',
        device: 'odb',
        localDisk: undefined,
        connection: {
          driver: 'ceph',
          handle: 'h',
          attributes: { k: 'v' },
          secretData: { s: Buffer.from([255, 0]) },
          encryptionData: { e: Buffer.from([1]) },
          effectiveStorageBytes: 10_737_418_240n,
        },
      },
    ],
    networkInterfaces: [{ name: 'n', networkId: 'net', ips: ['10.0.0.1', '::1'], attributes: { k: 'v' } }],
    guestConfig: { hostname: 'web' },
  },
  status: {
    observedGeneration: 2n,
    state: MachineState.MACHINE_STOPPED,
    imageRef: 'r',
    volumes: [{ name: 'v', handle: 'h', state: VolumeState.VOLUME_ATTACHED }],
    networkInterfaces: [{ name: 'n', handle: 't', state: NetworkInterfaceState.NETWORK_INTERFACE_ATTACHED }],
    machineConditions: [{ type: 'T', status: 'S', reason: 'R', message: 'M', lastTransitionTime: 9n }],
  },
};

const metadata = (fields: Partial<ObjectMetadata>): ObjectMetadata =>
  wireMessage(ObjectMetadata, { id: 'i', ...fields });

interface Row {
  readonly what: string;
  readonly bytes: Buffer;
  readonly encoded: () => Uint8Array;
  /** What is read from the bytes, written again: nothing is lost on the way in. */
  readonly again: () => Uint8Array;
}

interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

function row<T>(what: string, type: Codec<T>, message: T, hex: string): Row {
  const bytes = Buffer.from(hex.replaceAll(/#.*|\s/g, ''), 'hex');
  return {
    what,
    bytes,
    encoded: () => type.encode(message).finish(),
    again: () => type.encode(type.decode(bytes)).finish(),
  };
}

const ROWS: readonly Row[] = [
  row(
    'VersionRequest',
    VersionRequest,
    { version: 'v1' },
    `
      0a 02 76 31                                  # version = 1: "v1"
    `,
  ),
  row(
    'VersionResponse',
    VersionResponse,
    { runtimeName: 'r', runtimeVersion: '1.2.3' },
    `
      0a 01 72                                     # runtime_name = 1: "r"
      12 05 31 2e 32 2e 33                         # runtime_version = 2: "1.2.3"
    `,
  ),
  row(
    'ListMachinesRequest',
    ListMachinesRequest,
    { filter: { id: 'i', labelSelector: { l: 'm' } } },
    `
      0a 0b                                        # filter = 1: 11 bytes
        0a 01 69                                   # id = 1: "i"
        12 06                                      # label_selector = 2: 6 bytes
          0a 01 6c                                 # key = 1: "l"
          12 01 6d                                 # value = 2: "m"
    `,
  ),
  row(
    'ListMachinesResponse',
    ListMachinesResponse,
    { machines: [MACHINE] },
    `
      0a c8 01                                     # machines = 1: 200 bytes
        0a 1a                                      # metadata = 1: 26 bytes
          0a 01 69                                 # id = 1: "i"
          12 06                                    # annotations = 2: 6 bytes
            0a 01 61                               # key = 1: "a"
            12 01 62                               # value = 2: "b"
          1a 06                                    # labels = 3: 6 bytes
            0a 01 6c                               # key = 1: "l"
            12 01 6d                               # value = 2: "m"
          20 03                                    # generation = 4: 3
          28 01                                    # created_at = 5: 1
          30 ac 02                                 # deleted_at = 6: 300
        12 7d                                      # spec = 2: 125 bytes
          08 01                                    # power = 1: 1
          12 01 63                                 # class = 2: "c"
          1a 03 7b 7d 0a                           # ignition_data = 3: bytes 7b 7d 0a
          22 15                                    # volumes = 4: 21 bytes
            0a 01 64                               # name = 1: "d"
            12 03 6f 64 61                         # device = 2: "oda"
            22 0b                                  # local_disk = 4: 11 bytes
              08 80 80 80 80 04                    # size_bytes = 1: 1073741824
              12 03                                # image = 2: 3 bytes
                0a 01 78                           # image = 1: "x"
          22 32                                    # volumes = 4: 50 bytes
            0a 01 76                               # name = 1: "v"
            12 03 6f 64 62                         # device = 2: "odb"
            2a 28                                  # connection = 5: 40 bytes
              0a 04 63 65 70 68                    # driver = 1: "ceph"
              12 01 68                             # handle = 2: "h"
              1a 06                                # attributes = 3: 6 bytes
                0a 01 6b                           # key = 1: "k"
                12 01 76                           # value = 2: "v"
              22 07                                # secret_data = 4: 7 bytes
                0a 01 73                           # key = 1: "s"
                12 02 ff 00                        # value = 2: bytes ff 00
              2a 06                                # encryption_data = 5: 6 bytes
                0a 01 65                           # key = 1: "e"
                12 01 01                           # value = 2: bytes 01
              30 80 80 80 80 28                    # effective_storage_bytes = 6: 10737418240
          2a 1f                                    # network_interfaces = 5: 31 bytes
            0a 01 6e                               # name = 1: "n"
            12 03 6e 65 74                         # network_id = 2: "net"
            1a 08 31 30 2e 30 2e 30 2e 31          # ips = 3: "10.0.0.1"
            1a 03 3a 3a 31                         # ips = 3: "::1"
            22 06                                  # attributes = 4: 6 bytes
              0a 01 6b                             # key = 1: "k"
              12 01 76                             # value = 2: "v"
          32 05                                    # guest_config = 6: 5 bytes
            0a 03 77 65 62                         # hostname = 1: "web"
        1a 2b                                      # status = 3: 43 bytes
          08 02                                    # observed_generation = 1: 2
          10 05                                    # state = 2: 5
          1a 01 72                                 # image_ref = 3: "r"
          22 08                                    # volumes = 4: 8 bytes
            0a 01 76                               # name = 1: "v"
            12 01 68                               # handle = 2: "h"
            18 01                                  # state = 3: 1
          2a 08                                    # network_interfaces = 5: 8 bytes
            0a 01 6e                               # name = 1: "n"
            12 01 74                               # handle = 2: "t"
            18 01                                  # state = 3: 1
          32 0e                                    # machine_conditions = 6: 14 bytes
            0a 01 54                               # type = 1: "T"
            12 01 53                               # status = 2: "S"
            1a 01 52                               # reason = 3: "R"
            22 01 4d                               # message = 4: "M"
            28 09                                  # last_transition_time = 5: 9
    `,
  ),
  row(
    'CreateMachineRequest',
    CreateMachineRequest,
    { machine: { ...runtimeMachine({ labels: { l: 'm' } }, { class: 'c' }), status: undefined } },
    `
      0a 0f                                        # machine = 1: 15 bytes
        0a 08                                      # metadata = 1: 8 bytes
          1a 06                                    # labels = 3: 6 bytes
            0a 01 6c                               # key = 1: "l"
            12 01 6d                               # value = 2: "m"
        12 03                                      # spec = 2: 3 bytes
          12 01 63                                 # class = 2: "c"
    `,
  ),
  row(
    'CreateMachineResponse',
    CreateMachineResponse,
    { machine: wireMessage(Machine, { metadata: metadata({ createdAt: 1_700_000_000_000_000_000n }) }) },
    `
      0a 0f                                        # machine = 1: 15 bytes
        0a 0d                                      # metadata = 1: 13 bytes
          0a 01 69                                 # id = 1: "i"
          28 80 80 a8 b1 e3 9f e7 cb 17            # created_at = 5: 1700000000000000000
    `,
  ),
  row(
    'DeleteMachineRequest',
    DeleteMachineRequest,
    { machineId: 'i' },
    `
      0a 01 69                                     # machine_id = 1: "i"
    `,
  ),
  row(
    'UpdateMachineAnnotationsRequest',
    UpdateMachineAnnotationsRequest,
    { machineId: 'i', annotations: { a: 'b' } },
    `
      0a 01 69                                     # machine_id = 1: "i"
      12 06                                        # annotations = 2: 6 bytes
        0a 01 61                                   # key = 1: "a"
        12 01 62                                   # value = 2: "b"
    `,
  ),
  row(
    'UpdateMachinePowerRequest',
    UpdateMachinePowerRequest,
    { machineId: 'i', power: Power.POWER_OFF },
    `
      0a 01 69                                     # machine_id = 1: "i"
      10 01                                        # power = 2: 1
    `,
  ),
  row(
    'AttachVolumeRequest',
    AttachVolumeRequest,
    { machineId: 'i', volume: DISK },
    `
      0a 01 69                                     # machine_id = 1: "i"
      12 15                                        # volume = 2: 21 bytes
        0a 01 64                                   # name = 1: "d"
        12 03 6f 64 61                             # device = 2: "oda"
        22 0b                                      # local_disk = 4: 11 bytes
          08 80 80 80 80 04                        # size_bytes = 1: 1073741824
          12 03                                    # image = 2: 3 bytes
            0a 01 78                               # image = 1: "x"
    `,
  ),
  row(
    'DetachVolumeRequest',
    DetachVolumeRequest,
    { machineId: 'i', name: 'v' },
    `
      0a 01 69                                     # machine_id = 1: "i"
      12 01 76                                     # name = 2: "v"
    `,
  ),
  row(
    'UpdateVolumeRequest',
    UpdateVolumeRequest,
    { machineId: 'i', volume: remoteVolume('v', { effectiveStorageBytes: 1n }) },
    `
      0a 01 69                                     # machine_id = 1: "i"
      12 07                                        # volume = 2: 7 bytes
        0a 01 76                                   # name = 1: "v"
        2a 02                                      # connection = 5: 2 bytes
          30 01                                    # effective_storage_bytes = 6: 1
    `,
  ),
  row(
    'AttachNetworkInterfaceRequest',
    AttachNetworkInterfaceRequest,
    { machineId: 'i', networkInterface: { name: 'n', networkId: '', ips: [], attributes: {} } },
    `
      0a 01 69                                     # machine_id = 1: "i"
      12 03                                        # network_interface = 2: 3 bytes
        0a 01 6e                                   # name = 1: "n"
    `,
  ),
  row(
    'DetachNetworkInterfaceRequest',
    DetachNetworkInterfaceRequest,
    { machineId: 'i', name: 'n' },
    `
      0a 01 69                                     # machine_id = 1: "i"
      12 01 6e                                     # name = 2: "n"
    `,
  ),
  row(
    'StatusResponse',
    StatusResponse,
    { machineClassStatus: [{ machineClass: { name: 'c', capabilities: { resources: { cpu: 4n } } }, quantity: 200n }] },
    `
      0a 13                                        # machine_class_status = 1: 19 bytes
        0a 0e                                      # machine_class = 1: 14 bytes
          0a 01 63                                 # name = 1: "c"
          12 09                                    # capabilities = 2: 9 bytes
            0a 07                                  # resources = 1: 7 bytes
              0a 03 63 70 75                       # key = 1: "cpu"
              10 04                                # value = 2: 4
        10 c8 01                                   # quantity = 2: 200
    `,
  ),
  row(
    'ListEventsRequest',
    ListEventsRequest,
    { filter: { id: 'i', labelSelector: { l: 'm' }, eventsFromTime: 1n, eventsToTime: 300n } },
    `
      0a 10                                        # filter = 1: 16 bytes
        0a 01 69                                   # id = 1: "i"
        12 06                                      # label_selector = 2: 6 bytes
          0a 01 6c                                 # key = 1: "l"
          12 01 6d                                 # value = 2: "m"
        18 01                                      # events_from_time = 3: 1
        20 ac 02                                   # events_to_time = 4: 300
    `,
  ),
  row(
    'ListEventsResponse',
    ListEventsResponse,
    {
      events: [
        {
          spec: {
            involvedObjectMeta: metadata({ labels: { l: 'm' } }),
            reason: 'R',
            message: 'M',
            type: 'Warning',
            eventTime: 1_700_000_000n,
            action: 'A',
          },
        },
      ],
    },
    `
      0a 27                                        # events = 1: 39 bytes
        12 25                                      # spec = 2: 37 bytes
          0a 0b                                    # involved_object_meta = 1: 11 bytes
            0a 01 69                               # id = 1: "i"
            1a 06                                  # labels = 3: 6 bytes
              0a 01 6c                             # key = 1: "l"
              12 01 6d                             # value = 2: "m"
          12 01 52                                 # reason = 2: "R"
          1a 01 4d                                 # message = 3: "M"
          22 07 57 61 72 6e 69 6e 67               # type = 4: "Warning"
          28 80 e2 cf aa 06                        # event_time = 5: 1700000000
          32 01 41                                 # action = 6: "A"
    `,
  ),
  row(
    'ExecRequest',
    ExecRequest,
    { machineId: 'i' },
    `
      0a 01 69                                     # machine_id = 1: "i"
    `,
  ),
  row(
    'ExecResponse',
    ExecResponse,
    { url: 'u' },
    `
      0a 01 75                                     # url = 1: "u"
    `,
  ),
];

describe('the runtime interface of IronCore', () => {
  // promise: ironcore/pools-classes/runtimes-answers-wire-byte
  test.each(ROWS)('has the bytes of $what', ({ bytes, encoded, again }) => {
    expect(Buffer.from(encoded()).toString('hex')).toBe(bytes.toString('hex'));
    expect(Buffer.from(again()).toString('hex')).toBe(bytes.toString('hex'));
  });

  test('has these names on the wire', () => {
    const { fullName, methods } = MachineRuntimeDefinition;

    expect(fullName).toBe('machine.v1alpha1.MachineRuntime');
    expect(Object.values(methods).map(({ name }) => name)).toEqual([
      'Version',
      'ListEvents',
      'ListMachines',
      'CreateMachine',
      'DeleteMachine',
      'UpdateMachineAnnotations',
      'UpdateMachinePower',
      'AttachVolume',
      'DetachVolume',
      'UpdateVolume',
      'AttachNetworkInterface',
      'DetachNetworkInterface',
      'Status',
      'Exec',
    ]);
  });

  test('has these numbers of states', () => {
    expect([Power, MachineState, VolumeState, NetworkInterfaceState]).toEqual([
      { POWER_ON: 0, POWER_OFF: 1 },
      {
        MACHINE_PENDING: 0,
        MACHINE_RUNNING: 1,
        MACHINE_SUSPENDED: 2,
        MACHINE_TERMINATED: 3,
        MACHINE_TERMINATING: 4,
        MACHINE_STOPPED: 5,
      },
      { VOLUME_PENDING: 0, VOLUME_ATTACHED: 1 },
      { NETWORK_INTERFACE_PENDING: 0, NETWORK_INTERFACE_ATTACHED: 1 },
    ]);
  });
});
