import { isDeepStrictEqual } from 'node:util';

import type { Clock } from '../clock/clock.ts';

/** How to reach a server: what a TLS connection needs, and a proxy if there is one. */
export interface ConnectionSettings {
  readonly proxy?: { readonly kind: 'http' | 'socks'; readonly url: string };
  readonly tls: TlsMaterial;
}

/** PEM material and checks of one TLS connection. */
export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** What every request carries. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly connection: ConnectionSettings;
}

/** An API server and how we prove who we are. */
export interface Endpoint {
  /** Base URL without a trailing slash; may contain a path. */
  readonly url: string;
  /** Namespace of the kubeconfig's context or of the service account, if it names one. */
  readonly namespace: string | undefined;
  /** Present credentials. `connection` stays the same object until its content changes. Throws what loading throws. */
  credentials(): Promise<Credentials>;
  /** The server refused the present credentials (401), or they do not vouch for it: the next call loads them anew. */
  refused(): void;
}

/** Tokens and certificates rotate on disk; they are re-read after this. */
const FRESH_FOR_MS = 60_000;
/** A server that refuses everything does not make us run a credential plugin for each request. */
const REFUSAL_HOLD_MS = 5_000;

/** Loads credentials; `anew` asks to forget whatever the source itself remembers. */
export type LoadCredentials = (anew: boolean) => Promise<Credentials>;

/** An endpoint whose credentials are loaded once for all callers, kept at most 60 s and dropped on 401. */
export class RefreshingEndpoint implements Endpoint {
  readonly url: string;
  readonly namespace: string | undefined;
  readonly #load: LoadCredentials;
  readonly #clock: Clock;
  #current: Credentials | undefined;
  #loadedAtMs = -Infinity;
  #refusedAtMs = -Infinity;
  #anew = false;
  #loading: Promise<Credentials> | undefined;

  constructor(options: { url: string; namespace?: string | undefined; load: LoadCredentials; clock: Clock }) {
    this.url = options.url.replace(/\/+$/, '');
    this.namespace = options.namespace;
    this.#load = options.load;
    this.#clock = options.clock;
  }

  async credentials(): Promise<Credentials> {
    const age = this.#clock.monotonicMs() - this.#loadedAtMs;
    if (this.#current !== undefined && age < FRESH_FOR_MS && !this.#anew) return this.#current;
    this.#loading ??= this.#refresh().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  refused(): void {
    const now = this.#clock.monotonicMs();
    if (now - this.#refusedAtMs < REFUSAL_HOLD_MS) return;
    this.#refusedAtMs = now;
    this.#anew = true;
  }

  async #refresh(): Promise<Credentials> {
    const anew = this.#anew;
    this.#anew = false;
    const loaded = await this.#load(anew);
    const connection =
      this.#current !== undefined && isDeepStrictEqual(this.#current.connection, loaded.connection)
        ? this.#current.connection
        : loaded.connection;
    this.#current = { headers: loaded.headers, connection };
    this.#loadedAtMs = this.#clock.monotonicMs();
    return this.#current;
  }
}

/** The same API server, asked in the name of `user`; a service account is `system:serviceaccount:NAMESPACE:NAME`. */
export function impersonating(endpoint: Endpoint, user: string): Endpoint {
  return {
    url: endpoint.url,
    namespace: endpoint.namespace,
    async credentials() {
      const { headers, connection } = await endpoint.credentials();
      return { headers: { ...headers, 'Impersonate-User': user }, connection };
    },
    refused: () => endpoint.refused(),
  };
}
