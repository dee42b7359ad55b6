import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';

import { Agent, ProxyAgent, Socks5ProxyAgent, type Dispatcher } from 'undici';

import type { Clock } from '../../base/clock/clock.ts';
import { FairSlots } from '../../base/clock/fair-slots.ts';
import type { ConnectionSettings, Endpoint } from './endpoint.ts';
import { startGuard } from './start-guard.ts';

/** What a connection is for. Leases and probes have their own, so that they never queue behind stuck requests. */
export type Lane = 'requests' | 'leases' | 'probes' | 'watches';

/** Requests that are under way at once. */
export const REQUEST_CONNECTIONS = 16;
/** A watch holds its connection for minutes, so watches are unbounded: there are as many as informers and drains. */
const CONNECTIONS: Readonly<Record<Lane, number | null>> = {
  requests: REQUEST_CONNECTIONS,
  leases: 2,
  probes: 8,
  watches: null,
};
/**
 * Below the API server's own 90 s, so that we never write on a connection that it is about to close. Probes come once a minute: each would
 * cost TLS handshakes. They are reads, and repeated where something on the way has closed the connection sooner.
 */
const IDLE_CONNECTION_MS: Readonly<Record<Lane, number>> = {
  requests: 30_000,
  leases: 30_000,
  probes: 75_000,
  watches: 30_000,
};
const CONNECT_TIMEOUT_MS = 10_000;
/** Opens what requests of one lane to a server are sent by. */
export type OpenDispatcher = (server: string, lane: Lane) => Dispatcher;

/** How connections are made. */
export interface DispatchersOptions {
  /** In place of real ones, in simulations. */
  readonly open?: OpenDispatcher | undefined;
  /** An answer that is larger ends with an error; without it none is. */
  readonly maxBytes?: number | undefined;
  /** What is asked at once to see that the server lives waits for one another on so many. */
  readonly probeConnections?: number | undefined;
}

/** For what nobody aborts. */
const NEVER = new AbortController().signal;

/** What requests of one lane are sent by, and to which server. */
export interface UsedDispatcher {
  readonly dispatcher: Dispatcher;
  readonly headers: Readonly<Record<string, string>>;
  /** Scheme, host and port. */
  readonly origin: string;
  /** What each path begins with. */
  readonly prefix: string;
  /** For its connections, among those for whom requests are sent. */
  readonly turns: FairSlots;
}

/** There is nothing to send requests with: no credentials, or none of use. */
export class NoCredentialsError extends Error {
  override readonly name = 'NoCredentialsError';
}

/** The HTTP connections to one endpoint, rebuilt when its TLS material changes, and all broken off when its server does. */
export class Dispatchers {
  readonly #endpoint: Endpoint;
  readonly #open: OpenDispatcher | undefined;
  readonly #maxBytes: number | undefined;
  readonly #connections: Readonly<Record<Lane, number | null>>;
  readonly #byLane = new Map<Lane, Pick<UsedDispatcher, 'dispatcher' | 'turns'>>();
  /** No longer used for new requests; closed when those under way have ended. */
  readonly #retired = new Set<Pick<UsedDispatcher, 'dispatcher' | 'turns'>>();
  readonly #clock: Clock;
  #connection: ConnectionSettings | undefined;
  #url: string;
  #moving: Promise<void> | undefined;
  #isClosed = false;

  constructor(endpoint: Endpoint, clock: Clock, { open, maxBytes, probeConnections: probes }: DispatchersOptions = {}) {
    this.#endpoint = endpoint;
    this.#clock = clock;
    this.#open = open;
    this.#maxBytes = maxBytes;
    this.#connections = probes === undefined ? CONNECTIONS : { ...CONNECTIONS, probes };
    this.#url = endpoint.url;
  }

  /**
   * What sends the requests of a lane. Throws NoCredentialsError. Throws once everything to the server was broken off when it is another one
   * now: whoever reads its watches must find out first whether it goes on where the other was.
   */
  async use(lane: Lane): Promise<UsedDispatcher> {
    const { headers, connection } = await this.#endpoint.credentials().catch((err: unknown) => {
      throw new NoCredentialsError(err instanceof Error ? err.message : String(err), { cause: err });
    });
    if (this.#isClosed) throw new Error('the connections were closed');
    if (this.#endpoint.url !== this.#url) this.#moving ??= this.#move();
    if (this.#moving !== undefined) {
      await this.#moving;
      throw new Error(`the server is now ${this.#url}`);
    }
    if (connection !== this.#connection) {
      for (const known of this.#byLane.keys()) this.#retire(known);
      this.#connection = connection;
    }
    let used = this.#byLane.get(lane);
    if (used === undefined) {
      const opened = this.#open?.(this.#url, lane) ?? this.#create(connection, lane);
      used = { dispatcher: opened.compose(startGuard), turns: new FairSlots(REQUEST_CONNECTIONS) };
      this.#byLane.set(lane, used);
    }
    const { origin, pathname } = new URL(this.#url);
    return { ...used, headers, origin, prefix: pathname.replace(/\/$/, '') };
  }

  /** Whether requests of a lane are still sent by it. */
  isUsed(lane: Lane, { dispatcher }: UsedDispatcher): boolean {
    return this.#byLane.get(lane)?.dispatcher === dispatcher;
  }

  /**
   * Resolves when the connection of an answer that has been read can be used again: undici keeps it for one more turn of the event loop. Who
   * sends the next request sooner opens another connection. Never rejects.
   */
  async untilFree(): Promise<void> {
    if (this.#open === undefined) await this.#clock.sleep(0, NEVER);
  }

  /** What a watch sends has no end; its lines are limited as they are read. */
  #create(connection: ConnectionSettings, lane: Lane): Dispatcher {
    return createDispatcher(connection, {
      connections: this.#connections[lane],
      idleMs: IDLE_CONNECTION_MS[lane],
      maxBytes: lane === 'watches' ? undefined : this.#maxBytes,
    });
  }

  /** Never rejects. */
  async #move(): Promise<void> {
    const { url } = this.#endpoint;
    await this.#destroy().catch(() => undefined);
    // A turn of the event loop, in which the readers of watches learn that they are over.
    await this.#clock.sleep(0, NEVER).catch(() => undefined);
    this.#url = url;
    this.#moving = undefined;
  }

  /**
   * Stops using the connections of `silent` for new requests, unless its lane has others by now. No answer may mean that the
   * network swallows what we send on them; each would cost one more deadline to find out.
   */
  renew(lane: Lane, silent: Dispatcher): void {
    if (this.#byLane.get(lane)?.dispatcher === silent) this.#retire(lane);
  }

  /** Ends all for good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#destroy();
  }

  async #destroy(): Promise<void> {
    const all = [...this.#byLane.values(), ...this.#retired];
    this.#byLane.clear();
    for (const { turns } of all) turns.refuse(new Error('the connections were closed'));
    await Promise.all(all.map(({ dispatcher }) => dispatcher.destroy()));
  }

  /** Requests under way may end: they have deadlines, and watches end by themselves. */
  #retire(lane: Lane): void {
    const used = this.#byLane.get(lane);
    this.#byLane.delete(lane);
    if (used === undefined) return;
    const { dispatcher } = used;
    this.#retired.add(used);
    void dispatcher
      .close()
      .catch(() => dispatcher.destroy())
      .finally(() => this.#retired.delete(used));
  }
}

function createDispatcher(
  { tls, proxy }: ConnectionSettings,
  {
    connections,
    idleMs,
    maxBytes,
  }: { readonly connections: number | null; readonly idleMs: number; readonly maxBytes: number | undefined },
): Dispatcher {
  const { rejectUnauthorized, servername, ...material } = tls;
  const connect = {
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    ...(servername === undefined ? {} : { servername }),
    // Without any, plain HTTP may be meant.
    ...(Object.keys(material).length === 0 ? {} : { secureContext: contextOf(tls, material) }),
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  };
  const pool = {
    connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    ...(maxBytes === undefined ? {} : { maxResponseSize: maxBytes }),
  };
  if (proxy === undefined) return new Agent({ ...pool, connect });
  if (proxy.kind === 'socks') return new Socks5ProxyAgent(proxy.url, { ...pool, requestTls: connect });
  return new ProxyAgent({ ...pool, uri: proxy.url, requestTls: connect });
}

/** By what they were made of. */
const CONTEXTS = new WeakMap<ConnectionSettings['tls'], SecureContext>();

/** Made once for all lanes: it takes 50 kB, and certificates and keys are else parsed for each connection. */
function contextOf(tls: ConnectionSettings['tls'], material: SecureContextOptions): SecureContext {
  const known = CONTEXTS.get(tls);
  if (known !== undefined) return known;
  const made = createSecureContext(material);
  CONTEXTS.set(tls, made);
  return made;
}
