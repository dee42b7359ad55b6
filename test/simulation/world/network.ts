import { Dispatcher, errors } from 'undici';

import type { APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import type { Representation } from '../api-server/representation.ts';
import { errorEvent, type Watch, type WatchEvent } from '../api-server/watch.ts';
import { expired, Failure } from '../api-server/failure.ts';
import type { Past } from './past.ts';
import type { VirtualClock, VirtualTime } from './virtual-clock.ts';

/**
 * What becomes of a request on its way. `failed-500`: it is done, and the server says that it failed. `overtaken`: another writer changes the
 * object right before.
 */
export type RequestFault =
  | 'done'
  | 'request-lost'
  | 'answer-lost'
  | 'failed-500'
  | 'overtaken'
  | 'refused-403'
  | 'refused-429'
  | 'refused-500';

/** A cache of a server that is as it was at one time, and until another one: what is new comes then. */
export interface OldCache {
  readonly atMs: number;
  readonly untilMs: number;
}

/** How the network is, as the seed has it at the moment. */
export interface Weather {
  /** One way, for each request and event. */
  latencyMs(): number;
  faultOf(request: APIRequest): RequestFault;
  /** The cache that answers a read or a watch, where it is behind. */
  oldCacheOf(request: APIRequest, nowMs: number): OldCache | undefined;
  /** After which a watch is cut; Infinity: never. */
  watchLifeMs(): number;
  /** Whether a watch that goes on is told that the server has forgotten so much. */
  isForgotten(): boolean;
  /** How far the watch of that path is behind. */
  lagMs(path: string): number;
  /** Whether nothing more comes of a watch, which stays open. */
  isSilenced(): boolean;
}

/** What happens on the way, for the trace and for those who count. */
export interface NetworkObserver {
  /** The server is about to be asked; false: the process dies before. */
  asked(request: APIRequest): boolean;
  answered(request: APIRequest, code: number, fate: RequestFault, sentAtMs: number): void;
}

/** What the connections of a process to a server are made of. */
export interface ConnectionParts {
  readonly time: VirtualTime;
  readonly clock: VirtualClock;
  readonly server: SimulatedAPIServer;
  /** Of the server. */
  readonly past: Past;
  readonly weather: Weather;
  readonly observer: NetworkObserver;
}

const BOOKMARK_MS = 60_000;
/** How long before the end of a watch a bookmark says how far it is. */
const LAST_BOOKMARK_MS = 2_000;

/** Tells a request's sender how it is; undici asks for it. */
class Controller {
  paused = false;
  aborted = false;
  reason: Error | null = null;
  readonly rawHeaders = [];
  readonly rawTrailers = [];
  onAbort: (reason: Error) => void = () => undefined;

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.onAbort(reason);
  }
}

type Handler = Dispatcher.DispatchHandler;
type Options = Dispatcher.DispatchOptions;

/** Connections of one process to one API server, in place of those over the network. */
export class SimulatedConnection extends Dispatcher {
  readonly #parts: ConnectionParts;
  #open = 0;

  constructor(parts: ConnectionParts) {
    super();
    this.#parts = parts;
  }

  /** How many requests and watches have not ended. */
  get open(): number {
    return this.#open;
  }

  override dispatch(options: Options, handler: Handler): boolean {
    this.#open += 1;
    new Exchange(this.#parts, options, handler, () => (this.#open -= 1)).start();
    return true;
  }

  override close(): Promise<void>;
  override close(callback: () => void): void;
  override close(callback?: () => void): Promise<void> | void {
    if (callback === undefined) return Promise.resolve();
    callback();
  }

  override destroy(): Promise<void>;
  override destroy(...rest: unknown[]): void;
  override destroy(...rest: unknown[]): Promise<void> | void {
    const callback = rest.at(-1);
    if (typeof callback !== 'function') return Promise.resolve();
    (callback as () => void)();
  }
}

/** One request with its answer, or one watch. */
class Exchange {
  readonly #parts: ConnectionParts;
  readonly #options: Options;
  readonly #handler: Handler;
  readonly #ended: () => void;
  readonly #controller = new Controller();
  #isOver = false;
  #lastAtMs = 0;
  #sentAtMs = 0;
  #stops: (() => void)[] = [];
  #cancelIdle: () => void = () => undefined;

  constructor(parts: ConnectionParts, options: Options, handler: Handler, ended: () => void) {
    this.#parts = parts;
    this.#options = options;
    this.#handler = handler;
    this.#ended = ended;
  }

  get #undici(): Parameters<NonNullable<Handler['onResponseEnd']>>[0] {
    return this.#controller;
  }

  start(): void {
    const { time, weather, clock } = this.#parts;
    this.#controller.onAbort = (reason) => this.#fail(reason);
    this.#limit('headersTimeout', () => new errors.HeadersTimeoutError());
    // Its first byte is written by the process, and takes its time from then on.
    this.#stops.push(
      time.schedule(0, () =>
        clock.perform(() => {
          if (this.#isOver) return;
          this.#sentAtMs = time.elapsedMs;
          try {
            this.#handler.onRequestStart?.(this.#undici, {});
          } catch (err) {
            return this.#fail(err as Error);
          }
          time.schedule(weather.latencyMs(), () => this.#arrive());
        }),
      ),
    );
  }

  /** The server is reached: nobody can take the request back any more. */
  #arrive(): void {
    const { server, past, weather, observer, clock, time } = this.#parts;
    const sent = requestOf(this.#options);
    const fate = weather.faultOf(sent);
    const old = weather.oldCacheOf(sent, time.elapsedMs);
    const request = old === undefined ? sent : { ...sent, cachedAt: past.revisionAt(old.atMs) };
    if (clock.isDead) return;
    if (!observer.asked(request)) return;
    if (fate === 'request-lost') {
      observer.answered(request, 0, fate, this.#sentAtMs);
      return this.#break();
    }
    if (fate === 'overtaken') overtake(server, request);
    const answer = fate in REFUSALS ? refusal(fate as Refusal) : server.handle(request);
    observer.answered(request, answer.code, fate, this.#sentAtMs);
    if ('watch' in answer) return this.#watch(answer.watch, answer.representation, request, old?.untilMs);
    if (fate === 'answer-lost') return this.#break();
    const { code, body } = fate === 'failed-500' ? refusal('refused-500') : answer;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    this.#later(() => this.#answer(code, text), time.elapsedMs + weather.latencyMs());
  }

  #answer(code: number, text: string): void {
    this.#respond(code, code === 429 ? { 'retry-after': '1' } : {});
    this.#handler.onResponseData?.(this.#undici, Buffer.from(text));
    this.#end();
  }

  #respond(code: number, more: Readonly<Record<string, string>> = {}): void {
    const date = new Date(this.#parts.time.epochMs).toUTCString();
    const headers = { 'content-type': 'application/json', date, ...more };
    this.#handler.onResponseStart?.(this.#undici, code, headers, '');
  }

  /** `heldMs`: until when a cache that is behind has nothing to tell. */
  #watch(watch: Watch, representation: Representation, { path }: APIRequest, heldMs = 0): void {
    const { time, weather, server } = this.#parts;
    let isSilent = false;
    const send = (event: WatchEvent): void => {
      if (isSilent) return;
      const text = `${JSON.stringify(representation.event(event))}\n`;
      const atMs = Math.max(time.elapsedMs, heldMs) + weather.latencyMs() + weather.lagMs(path);
      this.#later(() => this.#data(text), atMs);
    };
    this.#later(() => {
      this.#respond(200);
      this.#limitSilence();
    });
    const isResumed = /[?&]resourceVersion=[1-9]/.test(path);
    if (isResumed && weather.isForgotten()) {
      send(errorEvent(expired('too old resource version: 1 (2)')));
      return this.#later(() => this.#end());
    }
    this.#stops.push(
      watch.follow(send),
      server.objects.onRestore(() => this.#break()),
    );
    if (watch.hasBookmarks) this.#bookmarks(watch, send);
    const lifeMs = weather.watchLifeMs();
    if (lifeMs !== Infinity) this.#stops.push(time.schedule(lifeMs, () => this.#break()));
    if (weather.isSilenced()) isSilent = true;
    const { timeoutSeconds } = watch;
    if (timeoutSeconds === undefined) return;
    this.#stops.push(
      time.schedule(timeoutSeconds * 1_000, () => (isSilent ? undefined : this.#later(() => this.#end()))),
    );
  }

  #bookmarks(watch: Watch, send: (event: WatchEvent) => void): void {
    const { time } = this.#parts;
    const each = (): void => {
      send(watch.bookmark());
      this.#stops.push(time.schedule(BOOKMARK_MS, each));
    };
    this.#stops.push(time.schedule(BOOKMARK_MS, each));
    const lastMs = (watch.timeoutSeconds ?? 0) * 1_000 - LAST_BOOKMARK_MS;
    if (lastMs > 0) this.#stops.push(time.schedule(lastMs, () => send(watch.bookmark())));
  }

  #data(text: string): void {
    this.#limitSilence();
    this.#handler.onResponseData?.(this.#undici, Buffer.from(text));
  }

  /** Hands something to the process, never before what was sent earlier. */
  #later(run: () => void, atMs = this.#parts.time.elapsedMs + this.#parts.weather.latencyMs()): void {
    const { time, clock } = this.#parts;
    // Each arrives after the one before, however the timers of one moment are drawn.
    this.#lastAtMs = Math.max(atMs, this.#lastAtMs + 0.001);
    time.schedule(this.#lastAtMs - time.elapsedMs, () => clock.deliver(() => (this.#isOver ? undefined : run())));
  }

  #limit(name: 'headersTimeout' | 'bodyTimeout', error: () => Error): void {
    const ms = (this.#options as Partial<Record<typeof name, number | null>>)[name] ?? 0;
    this.#cancelIdle();
    if (ms > 0) this.#cancelIdle = this.#parts.clock.schedule(ms, () => this.#fail(error()));
  }

  #limitSilence(): void {
    this.#limit('bodyTimeout', () => new errors.BodyTimeoutError());
  }

  #end(): void {
    if (this.#isOver) return;
    this.#stop();
    this.#handler.onResponseEnd?.(this.#undici, {});
  }

  /** The connection breaks. */
  #break(): void {
    this.#later(() => this.#fail(new errors.SocketError('other side closed')));
  }

  #fail(err: Error): void {
    if (this.#isOver) return;
    this.#stop();
    this.#handler.onResponseError?.(this.#undici, err);
  }

  #stop(): void {
    this.#isOver = true;
    this.#ended();
    this.#cancelIdle();
    for (const stop of this.#stops) stop();
  }
}

function requestOf({ method, path, body, headers }: Options): APIRequest {
  const header = (name: string): string | undefined => (headers as Readonly<Record<string, string>> | null)?.[name];
  return {
    method,
    path,
    ...(typeof body === 'string' && { body: JSON.parse(body) as unknown }),
    contentType: header('Content-Type'),
    accept: header('Accept'),
  };
}

/** Another controller notes something at the object of a change: its resourceVersion moves on, and nothing else that anybody reads. */
function overtake(server: SimulatedAPIServer, { path }: APIRequest): void {
  const [of = ''] = path.split('?', 1);
  const annotations = { 'example.com/noted': String(server.objects.revisions.current) };
  server.handle({
    method: 'PATCH',
    path: of.replace(/\/(status|scale)$/, ''),
    body: { metadata: { annotations } },
    contentType: 'application/merge-patch+json',
  });
}

const REFUSALS = {
  'refused-403': new Failure(403, 'Forbidden', 'the user may not do that for a while'),
  'refused-429': new Failure(429, 'TooManyRequests', 'the server has received too many requests'),
  'refused-500': new Failure(500, 'InternalError', 'the simulated server has failed'),
};
type Refusal = keyof typeof REFUSALS;

function refusal(fate: Refusal): { code: number; body: object } {
  const failure = REFUSALS[fate];
  return { code: failure.code, body: failure.status };
}
