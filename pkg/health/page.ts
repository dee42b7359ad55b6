import type { IncomingMessage, ServerResponse } from 'node:http';

/** Pages for people, beside probes and metrics. They only read. */
export interface Page {
  /** Begins to observe what it shows. */
  start(): void;
  /** Answers a GET or HEAD request for `path`; false: there is no such page, and nothing was done. */
  serve(path: string, request: IncomingMessage, response: ServerResponse): boolean;
  /** Ends all open responses, and observes nothing any more. */
  stop(): void;
}
