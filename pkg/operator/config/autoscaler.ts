import { isLoopback } from '../../driver/grpc/address.ts';
import type { ServerTlsFiles } from '../../driver/grpc/reloaded-server-credentials.ts';
import { isIP } from 'node:net';

import { MAX_REPLICAS } from '../../apis/machine/v1alpha1/defaults.ts';
import { CELL_SETTING_PREFIX } from '../../apis/machine/v1alpha1/labels.ts';
import { MANAGER_LEASE } from '../../kube/leader/names.ts';
import { FlagError } from './flag-error.ts';
import type { ValueReader } from './value-reader.ts';

/** How many Machines a MachineDeployment may have by an autoscaler's choice. */
export interface GroupLimits {
  readonly min: number;
  readonly max: number;
}

/** Where an autoscaler is served: a Unix socket, or a host and port. */
export type ListenAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

export interface AutoscalerConfig {
  readonly listen: ListenAddress;
  /** Undefined on a socket and, where the user wants so, on loopback. */
  readonly tls: ServerTlsFiles | undefined;
  /** Names that a client's certificate may show. */
  readonly clientNames: readonly string[];
  /** Limits of MachineDeployments, by name. */
  readonly nodes: ReadonlyMap<string, GroupLimits>;
  readonly gpuLabel: string;
  readonly gpuTypes: readonly string[];
}

/** The name that clients show unless the user wants another. */
export const DEFAULT_CLIENT_NAME = 'cluster-autoscaler';
/** Flag of the names that clients may show; where there are cells each namespace says it for itself. */
export const CLIENT_NAME = 'autoscaler-client-name';

const ADDRESS = 'autoscaler-grpc-address';
const TLS_FLAGS = ['autoscaler-tls-cert', 'autoscaler-tls-key', 'autoscaler-tls-client-ca'] as const;
const ALL_TLS_FLAGS = TLS_FLAGS.map((name) => `--${name}`).join(', ');

/** Reads the flags of the autoscaler's port; undefined when there is none. Throws FlagError for what would not work, or not safely. */
export function autoscalerFrom(
  { text, list }: ValueReader,
  around: {
    readonly namespace: string;
    readonly leases: ReadonlySet<string>;
    readonly hasTarget: boolean;
    /** Of the whole process, which has many namespaces, or of one of them. */
    readonly cells: 'none' | 'all' | 'one';
  },
): AutoscalerConfig | undefined {
  const address = text(ADDRESS);
  const [cert = '', key = '', clientCA = ''] = TLS_FLAGS.map(text);
  if (address === '') {
    const idle = ['nodes', ...TLS_FLAGS].find((name) => text(name) !== '' || list(name).length > 0);
    if (idle !== undefined)
      throw new FlagError(`--${idle} has no effect without --${ADDRESS}; set --${ADDRESS}, or remove --${idle}`);
    return undefined;
  }
  if (!around.leases.has(MANAGER_LEASE))
    throw new FlagError(
      `--${ADDRESS} requires controllers machine-deployment and machine-set in this process; see --controllers`,
    );
  if (!around.hasTarget)
    throw new FlagError(
      `--${ADDRESS} requires a target cluster, because an autoscaler asks for its Nodes; --target-kubeconfig is none`,
    );

  const listen = listenAddress(address);
  const clientNames = list(CLIENT_NAME);
  const tls = [cert, key, clientCA].every((file) => file === '') ? undefined : { cert, key, clientCA };
  if (around.cells === 'all') refuseForCells(address, listen, tls, clientNames);
  const namesOfFlags = around.cells === 'none' ? clientNames : [DEFAULT_CLIENT_NAME];
  refuseUnprotected(address, listen, tls, namesOfFlags);
  return {
    listen,
    tls,
    clientNames,
    nodes: nodesFrom(list('nodes'), around),
    gpuLabel: text('autoscaler-gpu-label'),
    gpuTypes: list('autoscaler-gpu-types'),
  };
}

function listenAddress(text: string): ListenAddress {
  if (/^unix:\/\/\/./.test(text)) return { kind: 'unix', path: text.slice('unix://'.length) };
  const [, ipv6, name, digits] = /^(?:\[([0-9a-fA-F:]+)\]|([^:/[\]\s]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = ipv6 ?? name;
  const port = Number(digits);
  if (host === undefined || port > 65_535 || (ipv6 !== undefined && isIP(ipv6) !== 6)) {
    throw new FlagError(
      `--${ADDRESS}: ${JSON.stringify(text)} is not valid: expected host:port such as 0.0.0.0:8086, or unix:///path/to/socket`,
    );
  }
  return { kind: 'tcp', host, port };
}

/** Only the name in its certificate says which namespace a client may scale. */
function refuseForCells(
  address: string,
  listen: ListenAddress,
  tls: ServerTlsFiles | undefined,
  clientNames: readonly string[],
): void {
  if (listen.kind === 'unix')
    throw new FlagError(
      `--${ADDRESS}=${address} is not supported with --cells, because clients of a socket present no name; set host:port with ${ALL_TLS_FLAGS}`,
    );
  if (tls === undefined)
    throw new FlagError(
      `--${ADDRESS}=${address} requires ${ALL_TLS_FLAGS} with --cells, because only the name in its certificate says which namespace a client may scale`,
    );
  if (clientNames.join() !== DEFAULT_CLIENT_NAME)
    throw new FlagError(
      `--${CLIENT_NAME} is not supported with --cells, because a client may scale one namespace only; remove it, and set annotation ${CELL_SETTING_PREFIX}/${CLIENT_NAME} of each namespace`,
    );
}

/** Anyone who can call it creates and deletes machines. */
function refuseUnprotected(
  address: string,
  listen: ListenAddress,
  tls: ServerTlsFiles | undefined,
  clientNames: readonly string[],
): void {
  if (tls === undefined) {
    if (clientNames.join() !== DEFAULT_CLIENT_NAME)
      throw new FlagError(
        `--autoscaler-client-name requires TLS: in plain text clients present no name, and any client that can connect may call; also set ${ALL_TLS_FLAGS}, or remove --autoscaler-client-name`,
      );
    if (listen.kind === 'unix' || isLoopback(listen.host)) return;
    throw new FlagError(
      `--${ADDRESS}=${address} requires ${ALL_TLS_FLAGS}, because any caller can delete machines; ` +
        'plain text is allowed only on unix:///path/to/socket or 127.0.0.1:port',
    );
  }
  if (listen.kind === 'unix')
    throw new FlagError(
      `--${TLS_FLAGS[0]} cannot be used with a socket, which is served in plain text and protected by its file mode; remove the TLS flags`,
    );
  const files = [tls.cert, tls.key, tls.clientCA];
  const missing = TLS_FLAGS.find((_name, i) => files[i] === '');
  if (missing !== undefined) throw new FlagError(`--${missing} is missing; ${ALL_TLS_FLAGS} must be set together`);
  if (clientNames.length === 0)
    throw new FlagError(
      '--autoscaler-client-name must not be empty, because every call would be refused; set the name that clients present',
    );
}

/** Reads `<min>:<max>:<namespace>.<name>`, as Gardener's fork has it; dots after the first belong to the name. Of cells each takes its own. */
function nodesFrom(
  items: readonly string[],
  { namespace, cells }: { readonly namespace: string; readonly cells: 'none' | 'all' | 'one' },
): ReadonlyMap<string, GroupLimits> {
  const nodes = new Map<string, GroupLimits>();
  const seen = new Set<string>();
  for (const item of items) {
    const refuse = (why: string): never => {
      throw new FlagError(`--nodes: ${JSON.stringify(item)} is not valid: ${why}`);
    };
    const [, min = '', max = '', of = '', name = ''] = /^(\d{1,10}):(\d{1,10}):([^.:]+)\.([^:]+)$/.exec(item) ?? [];
    if (name === '') return refuse('expected <min>:<max>:<namespace>.<MachineDeployment>, such as 0:10:default.pool-a');
    if (Number(max) > MAX_REPLICAS) refuse(`the maximum must not exceed ${MAX_REPLICAS}`);
    if (Number(min) > Number(max)) refuse('the minimum is greater than the maximum');
    if (of !== namespace && cells === 'none')
      refuse(`this process serves only namespace ${namespace}; see --namespace`);
    const key = cells === 'none' ? name : `${of}.${name}`;
    if (seen.has(key)) refuse(`${key} is listed twice`);
    seen.add(key);
    if (of === namespace) nodes.set(name, { min: Number(min), max: Number(max) });
  }
  return nodes;
}
