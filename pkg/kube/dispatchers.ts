import { createSecureContext } from 'node:tls';

import { Agent, ProxyAgent, Socks5ProxyAgent, type Dispatcher } from 'undici';

import type { ConnectionSettings, Endpoint } from './endpoint.ts';
import { startGuard } from './start-guard.ts';

/** What a connection is for. Leases and probes have their own, so that they never queue behind stuck requests. */
export type Lane = 'requests' | 'leases' | 'probes' | 'watches';

/** A watch holds its connection for minutes, so watches are unbounded: there are as many as informers and drains. */
const CONNECTIONS: Readonly<Record<Lane, number | null>> = { requests: 16, leases: 2, probes: 8, watches: null };
/** Below the API server's own 90 s, so that we never write on a connection that it is about to close. */
const IDLE_CONNECTION_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** The HTTP connections to one endpoint, rebuilt when its TLS material changes. */
export class Dispatchers {
  readonly #endpoint: Endpoint;
  readonly #byLane = new Map<Lane, Dispatcher>();
  /** No longer used for new requests; closed when those under way have ended. */
  readonly #retired = new Set<Dispatcher>();
  #connection: ConnectionSettings | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** The dispatcher for a lane, and the headers that each request must carry. */
  async use(lane: Lane): Promise<{ dispatcher: Dispatcher; headers: Readonly<Record<string, string>> }> {
    const { headers, connection } = await this.#endpoint.credentials();
    if (connection !== this.#connection) {
      this.#retireAll();
      this.#connection = connection;
    }
    let dispatcher = this.#byLane.get(lane);
    if (dispatcher === undefined) {
      dispatcher = createDispatcher(connection, CONNECTIONS[lane]).compose(startGuard);
      this.#byLane.set(lane, dispatcher);
    }
    return { dispatcher, headers };
  }

  /**
   * Stops using the connections of `silent` for new requests, unless its lane has others by now. No answer may mean that the
   * network swallows what we send on them; each would cost one more deadline to find out.
   */
  renew(lane: Lane, silent: Dispatcher): void {
    if (this.#byLane.get(lane) === silent) this.#retire(lane);
  }

  /** Breaks everything off. */
  async destroy(): Promise<void> {
    const all = [...this.#byLane.values(), ...this.#retired];
    this.#byLane.clear();
    await Promise.all(all.map((dispatcher) => dispatcher.destroy()));
  }

  #retireAll(): void {
    for (const lane of this.#byLane.keys()) this.#retire(lane);
  }

  /** Requests under way may end: they have deadlines, and watches end by themselves. */
  #retire(lane: Lane): void {
    const dispatcher = this.#byLane.get(lane);
    this.#byLane.delete(lane);
    if (dispatcher === undefined) return;
    this.#retired.add(dispatcher);
    void dispatcher
      .close()
      .catch(() => dispatcher.destroy())
      .finally(() => this.#retired.delete(dispatcher));
  }
}

function createDispatcher({ tls, proxy }: ConnectionSettings, connections: number | null): Dispatcher {
  const { rejectUnauthorized, servername, ...material } = tls;
  const connect = {
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    ...(servername === undefined ? {} : { servername }),
    // Made once: certificates and keys are else parsed for each connection. Without any, plain HTTP may be meant.
    ...(Object.keys(material).length === 0 ? {} : { secureContext: createSecureContext(material) }),
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  };
  const pool = {
    connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_CONNECTION_MS,
    keepAliveMaxTimeout: IDLE_CONNECTION_MS,
  };
  if (proxy === undefined) return new Agent({ ...pool, connect });
  if (proxy.kind === 'socks') return new Socks5ProxyAgent(proxy.url, { ...pool, requestTls: connect });
  return new ProxyAgent({ ...pool, uri: proxy.url, requestTls: connect });
}
