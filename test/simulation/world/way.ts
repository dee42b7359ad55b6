import type { APIRequest } from '../api-server/api-server.ts';
import type { OldCache, RequestFault, Weather } from './network.ts';
import type { SeededWeather } from './weather.ts';

/** The way to one of the clusters that have the same weather. It may be cut off while the others are reached. */
export class Way implements Weather {
  readonly #weather: SeededWeather;
  readonly #nowMs: () => number;
  #cutSinceMs = Infinity;
  #cutUntilMs = -Infinity;

  /** `nowMs`: the time of the world. */
  constructor(weather: SeededWeather, nowMs: () => number) {
    this.#weather = weather;
    this.#nowMs = nowMs;
  }

  /** Since when nothing reaches the cluster; Infinity: it is reached. */
  get downSinceMs(): number {
    return Math.min(this.#weather.downSinceMs, this.#isCut ? this.#cutSinceMs : Infinity);
  }

  /** No request reaches the cluster for so long, and what its watches have to tell comes after it. */
  cutOff(forMs: number): void {
    const nowMs = this.#nowMs();
    if (!this.#isCut) this.#cutSinceMs = nowMs;
    this.#cutUntilMs = nowMs + forMs;
  }

  /** Requests reach it again. */
  restore(): void {
    this.#cutUntilMs = -Infinity;
  }

  get #isCut(): boolean {
    return this.#nowMs() < this.#cutUntilMs;
  }

  latencyMs(): number {
    return this.#weather.latencyMs();
  }

  faultOf(request: APIRequest): RequestFault {
    return this.#isCut ? 'request-lost' : this.#weather.faultOf(request);
  }

  oldCacheOf(request: APIRequest, nowMs: number): OldCache | undefined {
    return this.#weather.oldCacheOf(request, nowMs);
  }

  watchLifeMs(): number {
    return this.#weather.watchLifeMs();
  }

  isForgotten(): boolean {
    return this.#weather.isForgotten();
  }

  lagMs(path: string): number {
    const heldMs = Math.max(0, this.#cutUntilMs - this.#nowMs());
    return heldMs + this.#weather.lagMs(path);
  }

  isSilenced(): boolean {
    return this.#weather.isSilenced();
  }
}
