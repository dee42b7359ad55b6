import type { Changes } from '../view.ts';

export type ConnectionState = 'connecting' | 'live' | 'lost' | 'refused';

export interface ConnectionHandlers {
  changed(changes: Changes, isFirst: boolean): void;
  /** `sinceMs`: of the last sign of life. */
  stateChanged(state: ConnectionState, sinceMs: number): void;
}

/** The server sends something at least every 10 s. */
const SILENT_AFTER_MS = 25_000;
const LOOKED_AT_EVERY_MS = 5_000;
const PAUSE_MS = { first: 1_000, longest: 15_000 };

/** Reads the stream of events, and connects again each time that it breaks. */
export class Connection {
  readonly #handlers: ConnectionHandlers;
  #source: EventSource | undefined;
  #heardMs = Date.now();
  #pauseMs = PAUSE_MS.first;
  #isFirst = true;

  constructor(handlers: ConnectionHandlers) {
    this.#handlers = handlers;
  }

  open(): void {
    this.#connect();
    setInterval(() => {
      if (this.#source !== undefined && Date.now() - this.#heardMs > SILENT_AFTER_MS) this.#lose('lost');
    }, LOOKED_AT_EVERY_MS);
  }

  #connect(): void {
    this.#heardMs = Math.max(this.#heardMs, Date.now() - SILENT_AFTER_MS / 2);
    this.#isFirst = true;
    const source = new EventSource('events');
    this.#source = source;
    source.addEventListener('message', ({ data }: MessageEvent<string>) => {
      this.#heard();
      this.#handlers.changed(JSON.parse(data) as Changes, this.#isFirst);
      this.#isFirst = false;
    });
    source.addEventListener('beat', () => this.#heard());
    // Closed by the server before anything came: it serves others, or refuses.
    source.addEventListener('error', () => this.#lose(source.readyState === EventSource.CLOSED ? 'refused' : 'lost'));
  }

  #heard(): void {
    this.#heardMs = Date.now();
    this.#pauseMs = PAUSE_MS.first;
    this.#handlers.stateChanged('live', this.#heardMs);
  }

  #lose(state: ConnectionState): void {
    this.#source?.close();
    this.#source = undefined;
    this.#handlers.stateChanged(state, this.#heardMs);
    setTimeout(() => this.#connect(), this.#pauseMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS.longest);
  }
}
