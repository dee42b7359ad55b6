import { Session } from 'node:inspector/promises';
import { Readable } from 'node:stream';
import { getHeapSnapshot } from 'node:v8';

import type { Clock } from '../base/clock/clock.ts';

/** A profile, in a format that Chrome DevTools opens. */
export interface Profile {
  /** By whose end DevTools knows the format. */
  readonly fileName: string;
  readonly content: Readable;
}

/** What can be taken, by the path under /debug/. */
export const PROFILES = ['profile', 'allocations', 'heap'] as const;

export type ProfileKind = (typeof PROFILES)[number];

export function isProfileKind(kind: string): kind is ProfileKind {
  return (PROFILES as readonly string[]).includes(kind);
}

/** How long profiles that take time may. */
export const SECONDS = { least: 1, usual: 30, most: 300 } as const;
/** Bytes of allocations between two samples: V8's own. */
const SAMPLING_INTERVAL = 512 * 1024;

/** For how long to look: as asked for, 30 s where nothing was. Undefined for what is no number, or out of range. */
export function secondsOf(query: URLSearchParams): number | undefined {
  const asked = Number(query.get('seconds') ?? SECONDS.usual);
  return asked >= SECONDS.least && asked <= SECONDS.most ? asked : undefined;
}

/** Takes profiles of this process by V8's own inspector, without a port of it. */
export class Profiles {
  readonly #clock: Clock;
  #isBusy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * What the CPU did (`profile`) or what was allocated and still lives (`allocations`) for so long, or until the signal is aborted; or
   * all of the heap (`heap`), for which the process stands still. Its content has to be read, or destroyed. Undefined while another one is
   * being taken, or read.
   */
  async take(kind: ProfileKind, seconds: number, signal: AbortSignal): Promise<Profile | undefined> {
    if (this.#isBusy) return undefined;
    this.#isBusy = true;
    const free = (): void => void (this.#isBusy = false);
    try {
      const profile = await this.#take(kind, seconds, signal);
      // A snapshot needs memory until it was read.
      profile.content.once('close', free);
      return profile;
    } catch (err) {
      free();
      throw err;
    }
  }

  async #take(kind: ProfileKind, seconds: number, signal: AbortSignal): Promise<Profile> {
    switch (kind) {
      case 'profile':
        return { fileName: 'machinist.cpuprofile', content: asJSON(await this.#profile(seconds, signal)) };
      case 'allocations':
        return { fileName: 'machinist.heapprofile', content: asJSON(await this.#allocations(seconds, signal)) };
      case 'heap':
        return { fileName: 'machinist.heapsnapshot', content: getHeapSnapshot() };
    }
  }

  async #profile(seconds: number, signal: AbortSignal): Promise<unknown> {
    using session = new OwnSession();
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await this.#wait(seconds, signal);
    return (await session.post('Profiler.stop')).profile;
  }

  async #allocations(seconds: number, signal: AbortSignal): Promise<unknown> {
    using session = new OwnSession();
    await session.post('HeapProfiler.startSampling', { samplingInterval: SAMPLING_INTERVAL });
    await this.#wait(seconds, signal);
    return (await session.post('HeapProfiler.stopSampling')).profile;
  }

  async #wait(seconds: number, signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(seconds * 1_000, signal).catch(() => undefined);
  }
}

/** A session that ends by itself; whatever it has begun ends with it. */
class OwnSession extends Session implements Disposable {
  constructor() {
    super();
    this.connect();
  }

  [Symbol.dispose](): void {
    this.disconnect();
  }
}

function asJSON(profile: unknown): Readable {
  return Readable.from([JSON.stringify(profile)]);
}

export interface Caller {
  readonly remoteAddress: string | undefined;
  readonly localAddress: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/**
 * Whether it is a person on this host, or behind `kubectl port-forward`: both ends of the connection are loopback. No page of a browser may
 * ask, neither one of another origin nor one whose name was made to lead here.
 */
export function isLocalCaller({ remoteAddress, localAddress, headers }: Caller): boolean {
  if (!isLoopback(remoteAddress) || !isLoopback(localAddress)) return false;
  const { host, origin } = headers;
  const site = headers['sec-fetch-site'];
  const isPage = origin !== undefined || (site !== undefined && site !== 'none');
  return !isPage && typeof host === 'string' && /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(host);
}

function isLoopback(address = ''): boolean {
  return address === '::1' || /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address);
}
