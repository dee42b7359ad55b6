import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Connection } from '../../hack/control-plane/connection.ts';
import { pkiFiles } from '../../hack/control-plane/pki.ts';
import { InformerSet } from '../../pkg/kube/cache/informers.ts';
import { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import type { InformerOptions } from '../../pkg/kube/cache/reflected-informer.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Gate } from '../../pkg/kube/gate/gate.ts';
import { fixedEndpoint } from '../../hack/control-plane/fixed-endpoint.ts';
import type { Endpoint } from '../../pkg/kube/client/endpoint.ts';
import { GatedWriter } from '../../pkg/kube/client/gated-writer.ts';
import type { GatedWriterOptions } from '../../pkg/kube/client/gated-writer.ts';
import { HttpReader } from '../../pkg/kube/client/http-reader.ts';
import { HttpListWatch } from '../../pkg/kube/client/list-watch.ts';
import type { Selection } from '../../pkg/kube/client/list-watch.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import { Transport } from '../../pkg/kube/client/transport.ts';
import type { RequestRecord, TransportOptions } from '../../pkg/kube/client/transport.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { HttpFaultProxy } from '../proxy/http-fault-proxy.ts';

/** A gate that is always open. */
export const openGate: Gate = { admit: async () => ({ remainingMs: Infinity, fencingToken: 0n }) };

/** How the administrator reaches a control plane; `url` is a proxy's, if there is one in between. */
export function adminEndpoint({ url, ca, adminToken }: Connection, through: string = url): Endpoint {
  return fixedEndpoint(through, { headers: { authorization: `Bearer ${adminToken}` }, tls: { ca } });
}

/** One client of the control plane as the administrator, with everything it was asked to do written down. */
export class KubeSession implements AsyncDisposable {
  readonly clock = new SystemClock();
  readonly transport: Transport;
  readonly reader: HttpReader;
  readonly writer: GatedWriter;
  readonly informers = new InformerSet();
  readonly requests: RequestRecord[] = [];
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  /** `url` is a proxy's, if there is one in between. */
  constructor(
    connection: Connection,
    options: {
      url?: string;
      transport?: Partial<TransportOptions>;
      writer?: Partial<GatedWriterOptions>;
    } = {},
  ) {
    this.transport = new Transport({
      endpoint: adminEndpoint(connection, options.url),
      clock: this.clock,
      userAgent: 'machinist/test',
      onRequest: (record) => this.requests.push(record),
      ...options.transport,
    });
    this.reader = new HttpReader(this.transport);
    this.writer = new GatedWriter({
      transport: this.transport,
      gate: openGate,
      cluster: 'control',
      observer: this.informers,
      ...options.writer,
    });
    this.#running = this.informers.run(this.signal);
  }

  /** Aborted when the session ends. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** How often something was asked: `count('list', 'secrets')`. */
  count(verb: RequestRecord['verb'], resource: string): number {
    return this.requests.filter((r) => r.verb === verb && r.resource === resource).length;
  }

  /** A running informer, frozen objects and all. */
  informer<T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection,
    options: Partial<InformerOptions<T>> & { idleMs?: number } = {},
  ): ReflectedInformer<T> {
    const { idleMs, ...more } = options;
    const source = new HttpListWatch({
      transport: this.transport,
      resource,
      selection,
      ...(idleMs === undefined ? {} : { idleMs }),
    });
    const { clock } = this;
    return this.informers.add(
      new ReflectedInformer({ source, clock, log: silentLogger, cluster: 'control', freeze: true, ...more }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error('session ended'));
    await this.#running;
    await this.transport.close();
  }
}

/** An HTTP proxy in front of a control plane, with the server's own certificate. */
export function httpProxyFor({ url, ca, admin, directory }: Connection): Promise<HttpFaultProxy> {
  const files = pkiFiles(join(directory, 'pki'));
  const certificate = readFileSync(files.server, 'utf8');
  const key = readFileSync(files.serverKey, 'utf8');
  return HttpFaultProxy.start({ url, ca, certificate, key, admin });
}
