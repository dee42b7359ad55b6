import { createHash } from 'node:crypto';

import type { Clock } from '../../base/clock/clock.ts';
import { Compute } from './compute.ts';
import { parseCredentials } from './credentials.ts';
import { HttpClient } from './http.ts';
import { Network } from './network.ts';
import { clusterTagOf } from './ownership.ts';
import { ServerPoll } from './server-poll.ts';
import { type ObserveRequest, Session } from './session.ts';
import type { OpenStackSettings } from './settings.ts';
import { UnansweredRequests } from './unanswered.ts';
import { Volumes } from './volume.ts';
import { abortable, SHARED_MS } from './abortable.ts';

/** A project in a region, as all machines see it that use the same Secret. */
export class Cloud {
  readonly region: string;
  readonly session: Session;
  readonly compute: Compute;
  readonly network: Network;
  readonly volumes: Volumes;
  /** What names stand for. */
  readonly names: Memo;
  readonly #clock: Clock;
  readonly #polls = new Map<string, ServerPoll>();

  constructor(
    session: Session,
    region: string,
    clock: Clock,
    pageSize: number,
    unanswered = new UnansweredRequests(clock),
  ) {
    this.region = region;
    this.session = session;
    this.compute = new Compute(session, region, pageSize);
    this.network = new Network(session, region, unanswered, pageSize);
    this.volumes = new Volumes(session, region, clock, pageSize);
    this.names = new Memo(clock);
    this.#clock = clock;
  }

  pollOf(cluster: string): ServerPoll {
    const known = this.#polls.get(cluster);
    if (known !== undefined) return known;
    const poll = new ServerPoll({
      clock: this.#clock,
      list: (signal) => this.compute.servers(clusterTagOf(cluster), signal),
      read: (id, signal) => this.compute.server(id, signal),
    });
    this.#polls.set(cluster, poll);
    return poll;
  }
}

interface Login {
  readonly session: Session;
  readonly regions: Map<string, Cloud>;
  usedAtMs: number;
}

/** A login that nobody has used for so long is forgotten: its Secret has changed, or is gone. */
const UNUSED_MS = 3_600_000;
/** What a login does not depend on. */
const NO_CREDENTIALS = new Set(['userData']);

/** The logins that are in use, one for all machines with the same credentials. */
export class Clouds {
  readonly #clock: Clock;
  readonly #settings: Pick<OpenStackSettings, 'pageSize' | 'proxies'>;
  readonly #observe: ObserveRequest;
  readonly #logins = new Map<string, Login>();
  /** Of all logins: a machine whose Secret has changed waits for what was asked for with the former one. */
  readonly #unanswered: UnansweredRequests;

  constructor(
    clock: Clock,
    settings: Pick<OpenStackSettings, 'pageSize' | 'proxies'>,
    observe: ObserveRequest = () => undefined,
  ) {
    this.#clock = clock;
    this.#observe = observe;
    this.#unanswered = new UnansweredRequests(clock);
    this.#settings = settings;
  }

  /** The cloud that a Secret opens. Throws InvalidArgument that names the key which is wrong. */
  open(secretData: Readonly<Record<string, Uint8Array>>, region: string): Cloud {
    const nowMs = this.#clock.monotonicMs();
    this.#forgetUnused(nowMs);
    const key = keyOf(secretData);
    const login = this.#logins.get(key) ?? this.#newLogin(secretData, nowMs);
    login.usedAtMs = nowMs;
    this.#logins.set(key, login);
    const cloud =
      login.regions.get(region) ??
      new Cloud(login.session, region, this.#clock, this.#settings.pageSize, this.#unanswered);
    login.regions.set(region, cloud);
    return cloud;
  }

  async close(): Promise<void> {
    const logins = [...this.#logins.values()];
    this.#logins.clear();
    await Promise.all(logins.map(({ session }) => session.close()));
  }

  #newLogin(secretData: Readonly<Record<string, Uint8Array>>, usedAtMs: number): Login {
    const credentials = parseCredentials(secretData);
    const session = new Session(
      credentials,
      this.#clock,
      new HttpClient(credentials.tls, this.#settings.proxies),
      this.#observe,
    );
    return { session, regions: new Map(), usedAtMs };
  }

  #forgetUnused(nowMs: number): void {
    for (const [key, { session, usedAtMs }] of this.#logins) {
      if (nowMs - usedAtMs < UNUSED_MS) continue;
      this.#logins.delete(key);
      void session.close();
    }
  }
}

/** Equal for equal credentials; a hash, so that none is kept as a key. */
function keyOf(secretData: Readonly<Record<string, Uint8Array>>): string {
  const hash = createHash('sha256');
  for (const name of Object.keys(secretData).toSorted()) {
    if (NO_CREDENTIALS.has(name)) continue;
    const value = secretData[name] ?? new Uint8Array();
    hash.update(`${name.length} ${name} ${value.length} `).update(value);
  }
  return hash.digest('hex');
}

const KEPT_MS = 30_000;

/**
 * Remembers for half a minute what names stand for, so that fifty machines of a class ask once. A failure is not remembered: what was
 * corrected works at once.
 */
class Memo {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { readonly value: Promise<unknown>; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get<T>(key: string, signal: AbortSignal, find: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const nowMs = this.#clock.monotonicMs();
    for (const [known, { untilMs }] of this.#entries) if (untilMs <= nowMs) this.#entries.delete(known);
    const known = this.#entries.get(key);
    if (known !== undefined) return (await abortable(known.value, signal)) as T; // of the same key
    const entry = { value: find(AbortSignal.timeout(SHARED_MS)), untilMs: nowMs + KEPT_MS };
    this.#entries.set(key, entry);
    try {
      return await abortable(entry.value, signal);
    } catch (err) {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
      throw err;
    }
  }
}
