import { type ChannelCredentials, Client, Metadata } from '@grpc/grpc-js';
import type { Client as NiceClient } from 'nice-grpc';

import type { Node } from '../../pkg/apis/wire.ts';
import {
  CloudProviderDefinition,
  type ExternalGrpcNode,
  type Instance as WireInstance,
  NodeGroupAutoscalingOptions,
} from '../../pkg/autoscaler/gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import type { CloudProvider, Group, GroupOptions, Instance, NodeRef } from './cloud-provider.ts';

const { methods, fullName } = CloudProviderDefinition;
type Method = keyof typeof methods;
type Rpcs = NiceClient<CloudProviderDefinition>;
type Request<M extends Method> = Parameters<Rpcs[M]>[0];
type Response<M extends Method> = Awaited<ReturnType<Rpcs[M]>>;

/** How upstream's provider `externalgrpc` is set up by its cloud-config. */
export interface GrpcProviderOptions {
  /** `host:port`, or `unix:///path`. */
  readonly address: string;
  readonly credentials: ChannelCredentials;
  /** Time for each call, known to the server; the default of `grpc_timeout`. */
  readonly timeoutMs?: number;
  /** Reads the bytes of a Node. */
  readonly decodeNode: (bytes: Uint8Array) => Promise<Node>;
}

const UNIMPLEMENTED = 12;
const ERROR_CLASS_OUT_OF_RESOURCES = 1;
const STATES = [undefined, 'running', 'creating', 'deleting'] as const;

/**
 * The client of the autoscaler's provider `externalgrpc`, with its habits: groups, the group of a node and templates are kept until
 * the next refresh; that there are no groups is what an error of NodeGroups means.
 */
export class GrpcProvider implements CloudProvider, AsyncDisposable {
  readonly #client: Client;
  readonly #options: GrpcProviderOptions;
  #groups: readonly Group[] | undefined;
  #groupOf = new Map<string, Group>();
  #templates = new Map<string, Node | undefined>();

  constructor(options: GrpcProviderOptions) {
    this.#options = options;
    this.#client = new Client(options.address, options.credentials);
  }

  async refresh(): Promise<void> {
    this.#groups = undefined;
    this.#groupOf = new Map();
    this.#templates = new Map();
    await this.call('refresh', {});
  }

  async nodeGroups(): Promise<readonly Group[]> {
    this.#groups ??= await this.call('nodeGroups', {}).then(
      (answer) => answer.nodeGroups,
      () => [],
    );
    return this.#groups;
  }

  async nodeGroupForNode(node: NodeRef): Promise<Group | undefined> {
    const key = `${node.name} ${node.providerID}`;
    const cached = this.#groupOf.get(key);
    if (cached !== undefined) return cached;
    const { nodeGroup } = await this.call('nodeGroupForNode', { node: wireNode(node) });
    if (nodeGroup === undefined || nodeGroup.id === '') return undefined;
    this.#groupOf.set(key, nodeGroup);
    return nodeGroup;
  }

  async targetSize(id: string): Promise<number> {
    return (await this.call('nodeGroupTargetSize', { id })).targetSize;
  }

  async increaseSize(id: string, delta: number): Promise<void> {
    await this.call('nodeGroupIncreaseSize', { id, delta });
  }

  async deleteNodes(id: string, nodes: readonly NodeRef[]): Promise<void> {
    await this.call('nodeGroupDeleteNodes', { id, nodes: nodes.map(wireNode) });
  }

  async decreaseTargetSize(id: string, delta: number): Promise<void> {
    await this.call('nodeGroupDecreaseTargetSize', { id, delta });
  }

  async nodes(id: string): Promise<readonly Instance[]> {
    return (await this.call('nodeGroupNodes', { id })).instances.map(instanceOf);
  }

  async template(id: string): Promise<Node | undefined> {
    if (!this.#templates.has(id)) this.#templates.set(id, await this.#askTemplate(id));
    return this.#templates.get(id);
  }

  async options(id: string, defaults: GroupOptions): Promise<GroupOptions> {
    try {
      const { nodeGroupAutoscalingOptions: own } = await this.call('nodeGroupGetOptions', {
        id,
        defaults: wireOptions(defaults),
      });
      return own === undefined ? defaults : optionsOf(own);
    } catch (err) {
      if (isUnimplemented(err)) return defaults;
      throw err;
    }
  }

  /** Any call, for what the autoscaler itself would not ask. Rejects with the ServiceError of grpc-js. */
  call<M extends Method>(method: M, request: Request<M>): Promise<Response<M>> {
    const { name, requestType, responseType } = methods[method] as unknown as Codec<M>; // the pairs belong together, which a union cannot say
    const { timeoutMs = 5_000 } = this.#options;
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        `/${fullName}/${name}`,
        (message: Request<M>) => Buffer.from(requestType.encode(message).finish()),
        (bytes) => responseType.decode(bytes),
        request,
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
        (err, answer) => (err === null ? resolve(answer as Response<M>) : reject(err)),
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.close();
  }

  async #askTemplate(id: string): Promise<Node | undefined> {
    try {
      const { nodeBytes } = await this.call('nodeGroupTemplateNodeInfo', { id });
      return await this.#options.decodeNode(nodeBytes);
    } catch (err) {
      if (isUnimplemented(err)) return undefined;
      throw err;
    }
  }
}

/** How the generated code encodes one method. */
interface Codec<M extends Method> {
  readonly name: string;
  readonly requestType: { encode(message: Request<M>): { finish(): Uint8Array } };
  readonly responseType: { decode(bytes: Uint8Array): Response<M> };
}

function isUnimplemented(err: unknown): boolean {
  return err instanceof Error && 'code' in err && err.code === UNIMPLEMENTED;
}

function wireNode({ name, providerID, labels, annotations }: NodeRef): ExternalGrpcNode {
  return { name, providerId: providerID, labels, annotations };
}

function instanceOf({ id, status }: WireInstance): Instance {
  const state = STATES[status?.instanceState ?? 0];
  const info = status?.errorInfo;
  // As the client does: without a state the rest is dropped, and without a code there is no error.
  if (state === undefined || info === undefined || info.errorCode === '') return { id, state, error: undefined };
  const outOfResources = info.instanceErrorClass === ERROR_CLASS_OUT_OF_RESOURCES;
  return { id, state, error: { code: info.errorCode, message: info.errorMessage, outOfResources } };
}

function wireOptions(options: GroupOptions): NodeGroupAutoscalingOptions {
  return {
    ...NodeGroupAutoscalingOptions.decode(new Uint8Array()),
    scaleDownUtilizationThreshold: options.scaleDownUtilizationThreshold,
    scaleDownUnneeded: durationOf(options.scaleDownUnneededMs),
    maxNodeProvision: durationOf(options.maxNodeProvisionMs),
  };
}

/** The answer replaces all defaults: what it leaves out is zero. */
function optionsOf(own: NodeGroupAutoscalingOptions): GroupOptions {
  return {
    scaleDownUtilizationThreshold: own.scaleDownUtilizationThreshold,
    scaleDownUnneededMs: millisecondsOf(own.scaleDownUnneeded),
    maxNodeProvisionMs: millisecondsOf(own.maxNodeProvision),
  };
}

function durationOf(ms: number): { seconds: bigint; nanos: number } {
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: (ms % 1_000) * 1_000_000 };
}

function millisecondsOf(duration: { seconds: bigint; nanos: number } | undefined): number {
  return duration === undefined ? 0 : Number(duration.seconds) * 1_000 + duration.nanos / 1_000_000;
}
