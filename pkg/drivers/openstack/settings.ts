import { MINUTE_MS } from '../../clock/clock.ts';

/** What can be set for all clouds together. */
export interface OpenStackSettings {
  /** How long a request for a server that was not answered may still make one. */
  readonly answerMs: number;
  /** A server that is being built for longer was forgotten by Nova. */
  readonly buildMs: number;
  /** Servers and flavors on one page of a list. */
  readonly pageSize: number;
}

/** For clouds as they are. */
export const DEFAULT_SETTINGS: OpenStackSettings = { answerMs: 2 * MINUTE_MS, buildMs: 20 * MINUTE_MS, pageSize: 500 };
