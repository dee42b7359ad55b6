import type { Registry } from 'prom-client';

import { declaring } from './declaring.ts';

/** What the driver for OpenStack counts of the services' APIs: each service by itself tells which of them is slow, or fails. */
export const OPENSTACK_REQUESTS = {
  name: 'machinist_openstack_request_seconds',
  help: 'In the OpenStack driver process: duration in seconds of requests to the services of the cloud, by service, method and HTTP status (none: no response).',
  labelNames: ['service', 'method', 'code'],
} as const;

export function openStackMetrics(registry: Registry) {
  const { name, help, labelNames } = OPENSTACK_REQUESTS;
  return {
    requests: declaring(registry).histogram(name, labelNames).help(help),
  };
}
