import type { Clock } from '../base/clock/clock.ts';
import { loadEndpoint, type EndpointSource } from '../kube/client/config.ts';
import { GatedWriter } from '../kube/client/gated-writer.ts';
import { HttpReader } from '../kube/client/http-reader.ts';
import { Transport } from '../kube/client/transport.ts';
import { openGate } from './open-gate.ts';
import type { OpenDispatcher } from '../kube/client/dispatchers.ts';
import type { OpenEndpoint } from '../kube/client/endpoint.ts';

/** Which cluster a driver works in, as its flag `--kubeconfig` says. */
export interface DriverClusterOptions extends Pick<EndpointSource, 'kubeconfig' | 'env'> {
  readonly clock: Clock;
  /** See TransportOptions. */
  readonly openDispatcher?: OpenDispatcher | undefined;
  readonly openEndpoint?: OpenEndpoint | undefined;
  /** Who the audit log says it was. */
  readonly userAgent: string;
}

/** The API server of a driver whose VMs are Nodes. */
export interface DriverCluster {
  readonly transport: Transport;
  readonly reader: HttpReader;
  readonly writer: GatedWriter;
}

/** Opens no connection yet. Throws ConfigError. */
export async function openDriverCluster(options: DriverClusterOptions): Promise<DriverCluster> {
  const { kubeconfig, env, clock, userAgent, openDispatcher, openEndpoint } = options;
  const endpoint = openEndpoint?.(kubeconfig) ?? (await loadEndpoint({ kubeconfig, clock, env }));
  const transport = new Transport({ endpoint, clock, userAgent, openDispatcher });
  const writer = new GatedWriter({ transport, gate: openGate, cluster: 'target' });
  return { transport, reader: new HttpReader(transport), writer };
}
