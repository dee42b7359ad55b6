import { MINUTE_MS, type Clock } from '../../base/clock/clock.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { MachineIdentity } from '../machine-identity.ts';
import type { Cloud } from './cloud.ts';

/** What can be set for all clouds together. */
export interface OpenStackSettings {
  /** How long a request for a server that was not answered may still make one. */
  readonly answerMs: number;
  /** A server that is being built for longer was forgotten by Nova. */
  readonly buildMs: number;
  /** Servers and flavors on one page of a list. */
  readonly pageSize: number;
  readonly proxies: Proxies;
}

/** Of which machine, in which cloud, something is made or deleted. */
export interface MachineOfCloud {
  readonly cloud: Cloud;
  readonly machine: MachineIdentity;
  readonly settings: OpenStackSettings;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Through which proxies a cloud is reached, as the variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY say; empty: directly. */
export interface Proxies {
  readonly http: string;
  readonly https: string;
  /** Hosts, domains with a leading dot, and ports that are reached directly; `*`: all. */
  readonly not: string;
}

/** What an environment says of proxies. Small letters win, as in other programs. */
export function proxiesIn(env: Readonly<Record<string, string | undefined>>): Proxies {
  const read = (name: string): string => (env[name.toLowerCase()] ?? env[name] ?? '').trim();
  return { http: read('HTTP_PROXY'), https: read('HTTPS_PROXY'), not: read('NO_PROXY') };
}

export const DEFAULT_OPENSTACK_SETTINGS: OpenStackSettings = {
  answerMs: 2 * MINUTE_MS,
  buildMs: 20 * MINUTE_MS,
  pageSize: 500,
  proxies: { http: '', https: '', not: '' },
};
