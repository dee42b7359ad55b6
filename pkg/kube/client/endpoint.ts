import { isDeepStrictEqual } from 'node:util';

import type { Clock } from '../../base/clock/clock.ts';
import { DeadlineError, withDeadline } from '../../base/clock/deadline.ts';
import { ConfigError } from './config-error.ts';

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

/** How the credentials of an endpoint stand. Times are monotonic. */
export interface CredentialState {
  /** When they were last loaded; undefined: never yet. */
  readonly loadedMs: number | undefined;
  /** Since when there are none that the server has not refused; undefined while there are, and before anybody has asked for any. */
  readonly missingSinceMs: number | undefined;
  /** What the last load has failed with, or that it has not ended yet while there are none; undefined when all is well. */
  readonly trouble: string | undefined;
}

/** An API server and how we prove who we are. */
export interface Endpoint {
  /** Base URL without a trailing slash; may contain a path. May be another one after `credentials` has resolved. */
  readonly url: string;
  /** What decides which server is reached, as it was at first, such as a proxy besides the URL; absent where that is the URL alone. */
  readonly way?: string | undefined;
  /** Namespace of the kubeconfig's context or of the service account, if it names one. */
  readonly namespace: string | undefined;
  /** Absent where nothing is ever loaded. */
  readonly state?: CredentialState | undefined;
  /**
   * Present credentials. `connection` stays the same object until its content changes, and so does the whole until it is loaded again. Throws
   * what loading throws, when there are none that the server has not refused.
   */
  credentials(): Promise<Credentials>;
  /** The server refused the present credentials (401), or they do not vouch for it: the next call loads them anew. */
  refused(): void;
  /** They may be out of date: the next call begins to load them, and nobody waits for it. Absent where nothing is ever loaded. */
  outdated?(): void;
}

/** What takes the place of the API server that a kubeconfig flag means. */
export type OpenEndpoint = (kubeconfig: string) => Endpoint;

/** Tokens and certificates rotate on disk; they are re-read after this. */
const FRESH_FOR_MS = 60_000;
/** A server that refuses everything does not make us run a credential plugin for each request. */
const REFUSAL_HOLD_MS = 5_000;
/** A load that hangs, such as a credential plugin whose cloud does not answer, is given up after this. */
const LOAD_WITHIN_MS = 10_000;
/** Pause after a load that failed; twice as long after each further one. */
const PAUSE_MS = { first: 1_000, longest: 30_000 };

/** Loads credentials; `refresh` asks to forget whatever the source itself remembers. The signal ends what hangs. */
export type LoadCredentials = (how: {
  readonly refresh: boolean;
  readonly signal: AbortSignal;
}) => Promise<Credentials & { readonly url?: string }>;

export type LoadResult =
  | {
      readonly ok: true;
      /** Loads that had failed before it. */
      readonly failures: number;
      /** The server, if it is another one than before. */
      readonly movedTo?: string | undefined;
    }
  | { readonly ok: false; readonly failures: number; readonly why: string };

export interface RefreshingEndpointOptions {
  readonly url: string;
  /** See Endpoint. */
  readonly way?: string | undefined;
  readonly namespace?: string | undefined;
  readonly load: LoadCredentials;
  readonly clock: Clock;
  /** Longest time of one load; 10 s unless told otherwise. */
  readonly loadWithinMs?: number | undefined;
  /** What is loaded, and by which program: named when it hangs. */
  readonly source?: (() => string) | undefined;
  /** Must not throw. */
  readonly onLoad?: ((result: LoadResult) => void) | undefined;
}

/**
 * An endpoint whose credentials are loaded once for all callers, and again when they are a minute old or were refused (401).
 *
 * | there are           | a caller gets                  | a load is begun                                         |
 * |---------------------|--------------------------------|---------------------------------------------------------|
 * | fresh ones          | them                           | no                                                      |
 * | old ones            | them                           | yes, and nobody waits for it                            |
 * | none, or refused    | what the load ends with        | yes                                                     |
 * | the same, and the   | what that ended with, at once  | when the pause is over: 1 s, doubled up to 30 s         |
 * | last load failed    |                                |                                                         |
 *
 * A load ends after 10 s. One that fails takes nothing away: what the server has not refused is used on.
 */
export class RefreshingEndpoint implements Endpoint {
  readonly way: string | undefined;
  readonly namespace: string | undefined;
  readonly #options: RefreshingEndpointOptions;
  #url: string;
  #current: Credentials | undefined;
  #loadedMs: number | undefined;
  #refusedAtMs = -Infinity;
  #isRefused = false;
  #missingSinceMs: number | undefined;
  #isOutdated = false;
  /** Never rejects. */
  #loading: Promise<void> | undefined;
  /** Loads that failed in a row, what the last one of them failed with, and when the next may begin. */
  #failures = 0;
  #failure: unknown;
  #againAtMs = -Infinity;

  constructor(options: RefreshingEndpointOptions) {
    this.#options = options;
    this.#url = withoutSlash(options.url);
    this.way = options.way;
    this.namespace = options.namespace;
  }

  get url(): string {
    return this.#url;
  }

  get state(): CredentialState {
    const failure = this.#failures === 0 ? undefined : messageOf(this.#failure);
    const trouble = failure ?? (this.#missingSinceMs === undefined ? undefined : 'loading is still in progress');
    return { loadedMs: this.#loadedMs, missingSinceMs: this.#missingSinceMs, trouble };
  }

  async credentials(): Promise<Credentials> {
    for (;;) {
      const held = this.#isRefused ? undefined : this.#current;
      if (held !== undefined) {
        if (this.#isOld && this.#mayLoad) this.#load();
        return held;
      }
      this.#missingSinceMs ??= this.#options.clock.monotonicMs();
      if (this.#mayLoad) this.#load();
      if (this.#loading === undefined) throw this.#failure;
      const failures = this.#failures;
      await this.#loading;
      if (this.#failures > failures) throw this.#failure;
    }
  }

  refused(): void {
    const now = this.#options.clock.monotonicMs();
    if (now - this.#refusedAtMs < REFUSAL_HOLD_MS) return;
    this.#refusedAtMs = now;
    this.#isRefused = true;
    this.#missingSinceMs ??= now;
  }

  outdated(): void {
    this.#isOutdated = true;
  }

  get #isOld(): boolean {
    return this.#isOutdated || this.#options.clock.monotonicMs() - (this.#loadedMs ?? -Infinity) >= FRESH_FOR_MS;
  }

  get #mayLoad(): boolean {
    return this.#loading === undefined && this.#options.clock.monotonicMs() >= this.#againAtMs;
  }

  #load(): void {
    this.#loading = this.#refresh().finally(() => {
      this.#loading = undefined;
    });
  }

  /** Never rejects. */
  async #refresh(): Promise<void> {
    this.#isOutdated = false;
    const { clock, load, loadWithinMs = LOAD_WITHIN_MS, source, onLoad } = this.#options;
    const refresh = this.#isRefused;
    const failures = this.#failures;
    try {
      const run = (signal: AbortSignal): ReturnType<LoadCredentials> => load({ refresh, signal });
      const { url, ...loaded } = await withDeadline(clock, loadWithinMs, 'loading the credentials', run);
      const movedTo = this.#take(loaded, refresh, url);
      this.#failures = 0;
      onLoad?.({ ok: true, failures, movedTo });
    } catch (err) {
      this.#failures += 1;
      const why = messageOf(err);
      const isHang = err instanceof DeadlineError && source !== undefined;
      this.#failure = isHang ? new ConfigError(`${why}: ${source()}`, { cause: err }) : err;
      this.#againAtMs = clock.monotonicMs() + Math.min(PAUSE_MS.first * 2 ** failures, PAUSE_MS.longest);
      onLoad?.({ ok: false, failures: this.#failures, why: messageOf(this.#failure) });
    }
  }

  /** Returns the server if it is another one now. */
  #take(loaded: Credentials, refreshed: boolean, url: string | undefined): string | undefined {
    const before = this.#current;
    const connection =
      before !== undefined && isDeepStrictEqual(before.connection, loaded.connection)
        ? before.connection
        : loaded.connection;
    const isSame = before?.connection === connection && isDeepStrictEqual(before.headers, loaded.headers);
    if (before === undefined || !isSame) this.#current = { headers: loaded.headers, connection };
    this.#loadedMs = this.#options.clock.monotonicMs();
    // A load that began before the refusal has found what was refused.
    if (refreshed || !isSame) this.#isRefused = false;
    if (!this.#isRefused) this.#missingSinceMs = undefined;
    if (url === undefined || withoutSlash(url) === this.#url) return undefined;
    this.#url = withoutSlash(url);
    return this.#url;
  }
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}

function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

/** The same API server, asked in the name of `user`; a service account is `system:serviceaccount:NAMESPACE:NAME`. */
export function impersonating(endpoint: Endpoint, user: string): Endpoint {
  let last: { readonly of: Credentials; readonly credentials: Credentials } | undefined;
  return {
    get url() {
      return endpoint.url;
    },
    way: endpoint.way,
    namespace: endpoint.namespace,
    get state() {
      return endpoint.state;
    },
    async credentials() {
      const of = await endpoint.credentials();
      if (last?.of !== of) last = { of, credentials: { ...of, headers: { ...of.headers, 'Impersonate-User': user } } };
      return last.credentials;
    },
    refused: () => endpoint.refused(),
  };
}
