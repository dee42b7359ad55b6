import { describe, expect, test } from '@jest/globals';

import {
  type ExternalGrpcNode,
  InstanceStatus_InstanceState as State,
  NodeGroupDecreaseTargetSizeRequest,
  NodeGroupDeleteNodesRequest,
  NodeGroupForNodeRequest,
  NodeGroupForNodeResponse,
  NodeGroupIncreaseSizeRequest,
  NodeGroupNodesResponse,
  NodeGroupsResponse,
  NodeGroupTargetSizeResponse,
} from './gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';

/*
 * Bytes as the cluster-autoscaler sends and reads them, put together by hand from the numbers of its contract: a number that is wrong in
 * our proto is wrong in client and server alike, where both are generated from it. Templates and options have theirs beside them.
 */
interface Row {
  readonly what: string;
  readonly hex: string;
  readonly decode: (bytes: Uint8Array) => unknown;
  readonly encode: () => { finish(): Uint8Array };
  readonly message: unknown;
}

function row<T>(what: string, hex: string, type: Codec<T>, message: T): Row {
  return { what, hex, message, decode: (bytes) => type.decode(bytes), encode: () => type.encode(message) };
}

interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

const NODE: ExternalGrpcNode = { providerId: 'a', name: 'b', labels: { k: 'v' }, annotations: { l: 'w' } };
const NODE_HEX = '0a0161 120162 1a06 0a016b 120176 2206 0a016c 120177';
const GROUP = { id: 'g', minSize: 1, maxSize: 5, debug: 'd' };
const GROUP_HEX = '0a0167 1001 1805 220164';

const ROWS: readonly Row[] = [
  row('NodeGroups', `0a0a ${GROUP_HEX}`, NodeGroupsResponse, { nodeGroups: [GROUP] }),
  row('NodeGroupForNode, asked', `0a16 ${NODE_HEX}`, NodeGroupForNodeRequest, { node: NODE }),
  row('NodeGroupForNode, answered', `0a0a ${GROUP_HEX}`, NodeGroupForNodeResponse, { nodeGroup: GROUP }),
  row('NodeGroupTargetSize', '0807', NodeGroupTargetSizeResponse, { targetSize: 7 }),
  row('NodeGroupIncreaseSize', '0803 120167', NodeGroupIncreaseSizeRequest, { delta: 3, id: 'g' }),
  row('NodeGroupDecreaseTargetSize', '08ffffffffffffffffff01 120167', NodeGroupDecreaseTargetSizeRequest, {
    delta: -1,
    id: 'g',
  }),
  row('NodeGroupDeleteNodes', `0a16 ${NODE_HEX} 120167`, NodeGroupDeleteNodesRequest, { nodes: [NODE], id: 'g' }),
  row('NodeGroupNodes', '0a11 0a0169 120c 0802 1208 0a0163 12016d 1801 0a07 0a016a 1202 0803', NodeGroupNodesResponse, {
    instances: [
      {
        id: 'i',
        status: {
          instanceState: State.instanceCreating,
          errorInfo: { errorCode: 'c', errorMessage: 'm', instanceErrorClass: 1 },
        },
      },
      { id: 'j', status: { instanceState: State.instanceDeleting, errorInfo: undefined } },
    ],
  }),
];

describe('the contract with a cluster-autoscaler', () => {
  test.each(ROWS)('has the bytes of $what', ({ hex, decode, encode, message }) => {
    const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');

    expect(decode(bytes)).toEqual(message);
    expect(Buffer.from(encode().finish()).toString('hex')).toBe(bytes.toString('hex'));
  });
});
