import { collectDefaultMetrics, Registry } from 'prom-client';

/** The registry that `/metrics` serves: never prom-client's global one, so that two of them can live in one process. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
